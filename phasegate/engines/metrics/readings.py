"""A page's text in our words: Prometheus' text format -> readings, of one page or of several added up.

The format is read with the parser of ``prometheus-client``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from phasegate.engines.metrics.names import ENGINES, EngineNames, Name
from phasegate.stats.counters import COUNTS, GAUGES, TIMES, Kind, Reading

_FRACTIONS = ("kv_usage",)
"""Gauges that are shares: of several samples the largest counts, where others are added up."""

Samples = dict[str, list[tuple[Mapping[str, str], float]]]
"""Name of a sample -> labels and value of each."""


def read_page(text: str, names: EngineNames) -> dict[str, Reading]:
    """The readings of a page.

    Raises:
        ValueError: it is not in Prometheus' text format.
    """
    return readings_of(samples_of(text), names)


def samples_of(text: str) -> Samples:
    """Everything on a page.

    Raises:
        ValueError: as `read_page`.
    """
    from prometheus_client.parser import text_string_to_metric_families

    samples: Samples = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples[sample.name].append((sample.labels, sample.value))
    return samples


def readings_of(samples: Samples, names: EngineNames) -> dict[str, Reading]:
    """The words that these samples have a reading for."""
    return {word: reading for word, (_, reading) in _named(samples, names).items()}


def readings_of_workers(pages: Sequence[Samples]) -> dict[str, Reading]:
    """The pages of several workers as one: values and counts added, of shares the largest; each worker's in `parts`.

    A word has one name on all pages of an engine: what two workers tell of the same thing under two names is not added
    up. A word that one engine tells as a histogram and another as a counter has no count in common and is a counter.
    Pages of unknown engines tell nothing.
    """
    by_engine: dict[str, list[Samples]] = {}
    for page in pages:
        engine = engine_of(page)
        if engine is not None:
            by_engine.setdefault(engine, []).append(page)
    together: dict[str, Reading] = {}
    for engine, alike in by_engine.items():
        for word, one in _of_alike(alike, ENGINES[engine]).items():
            together[word] = _both(word, together[word], one) if word in together else one
    return together


def _of_alike(pages: Sequence[Samples], names: EngineNames) -> dict[str, Reading]:
    """Pages of one engine."""
    whole: Samples = defaultdict(list)
    for page in pages:
        for spelling, found in page.items():
            whole[spelling] += found
    readings = {}
    for word, (name, reading) in _named(whole, names).items():
        own = [_reading(word, name, page) for page in pages]
        readings[word] = replace(reading, parts=tuple(0.0 if one is None else one.value for one in own))
    return readings


def _named(samples: Samples, names: EngineNames) -> dict[str, tuple[Name, Reading]]:
    """Word -> the first of its names that these samples have, and the reading."""
    readings = {}
    for word, candidates in names.words.items():
        for name in candidates:
            reading = _reading(word, name, samples)
            if reading is not None:
                readings[word] = (name, reading)
                break
    return readings


def _reading(word: str, name: Name, samples: Samples) -> Reading | None:
    """One metric, summed over the samples that have its labels; None where the page has none."""

    def values(spelling: str) -> list[float]:
        found = (value for labels, value in samples.get(spelling, ()) if _has(labels, name.labels))
        return [value for value in found if math.isfinite(value)]

    if word in GAUGES:
        found = values(name.name)
        return Reading(Kind.GAUGE, max(found) if word in _FRACTIONS else sum(found)) if found else None
    sums, counts = values(f"{name.name}_sum"), values(f"{name.name}_count")
    if sums and counts:
        return Reading(Kind.HISTOGRAM, sum(sums) * name.scale, sum(counts))
    found = values(f"{name.name}_total") or values(name.name)
    return Reading(Kind.COUNTER, sum(found) * name.scale) if found else None


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(fnmatchcase(labels.get(name, ""), value) for name, value in wanted.items())


def engine_of(names: Iterable[str]) -> str | None:
    """Whose page has samples of these names; None for an engine that is not in the table."""
    found = list(names)
    return next((engine for engine, one in ENGINES.items() if any(name.startswith(one.prefix) for name in found)), None)


def _both(word: str, one: Reading, other: Reading) -> Reading:
    value = max(one.value, other.value) if word in _FRACTIONS else one.value + other.value
    parts = (*one.parts, *other.parts)
    if one.count is None or other.count is None:
        return Reading(Kind.GAUGE if word in GAUGES else Kind.COUNTER, value, parts=parts)
    return Reading(Kind.HISTOGRAM, value, one.count + other.count, parts)


def words_without_meaning(names: Iterable[str]) -> list[str]:
    """Words that are none of ours; a check of the table."""
    return sorted(set(names) - {*TIMES, *COUNTS, *GAUGES})
