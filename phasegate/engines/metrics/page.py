"""Reading a ``/metrics`` page: Prometheus' text format -> readings under our words.

The format is read with the parser of ``prometheus-client`` (extra ``metrics``); without the package there are no
readings, and a note says so. A page is asked for between measurements, never inside one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from time import sleep

from phasegate.engines.ask import AskError, ask_text, root_of
from phasegate.engines.metrics.names import ENGINES, EngineNames, Name
from phasegate.stats.counters import COUNTS, GAUGES, TIMES, Kind, Reading

SECONDS = 5.0
"""Longest wait for a page; a busy server's page takes milliseconds."""

_FRACTIONS = ("kv_usage",)
"""Gauges that are shares: of several samples the largest counts, where others are added up."""


@dataclass(frozen=True, slots=True)
class Page:
    """One reading of a server's page.

    Attributes:
        readings: our word -> reading; words that the page does not have are missing.
        note: why there is no reading, in one sentence for people, or None.
    """

    readings: Mapping[str, Reading]
    note: str | None = None


class MetricsDoor:
    """Where a server's page is, and how to read it.

    Args:
        base_url: the server's API, with its version path.
        engine: as `ServerIdentity.engine` names it.
        api_key: what clients present, or None.
    """

    def __init__(self, base_url: str, engine: str, api_key: str | None = None) -> None:
        self._url = root_of(base_url) + "/metrics"
        self._api_key = api_key
        self.names: EngineNames | None = ENGINES.get(engine.lower())
        self._closed: str | None = None

    def read(self) -> Page:
        """The page now. Never raises: a page that cannot be had is a note, and is not asked for again."""
        if self.names is None:
            return Page({})
        if self._closed is None and find_spec("prometheus_client") is None:
            self._closed = (
                "the server's own counters were not read: the package prometheus-client is not installed; "
                "pip install 'phasegate[metrics]'"
            )
        if self._closed is None:
            sleep(self.names.settle)
            try:
                return Page(read_page(ask_text(self._url, api_key=self._api_key, seconds=SECONDS), self.names))
            except AskError as error:
                hint = f"; {self.names.enabled_by} opens it" if self.names.enabled_by else ""
                self._closed = f"the server's own counters were not read: /metrics gave {error}{hint}"
            except ValueError as error:
                self._closed = f"the server's own counters were not read: /metrics is not readable ({error})"
        return Page({}, self._closed)


def read_page(text: str, names: EngineNames) -> dict[str, Reading]:
    """The readings of a page.

    Raises:
        ValueError: it is not in Prometheus' text format.
        ImportError: the package ``prometheus-client`` is not installed.
    """
    from prometheus_client.parser import text_string_to_metric_families

    samples: dict[str, list[tuple[Mapping[str, str], float]]] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples[sample.name].append((sample.labels, sample.value))
    readings = {}
    for word, candidates in names.words.items():
        found = next((one for name in candidates if (one := _reading(word, name, samples)) is not None), None)
        if found is not None:
            readings[word] = found
    return readings


def _reading(word: str, name: Name, samples: Mapping[str, list[tuple[Mapping[str, str], float]]]) -> Reading | None:
    """One metric, summed over the samples that have its labels; None where the page has none."""

    def values(spelling: str) -> list[float]:
        return [value for labels, value in samples.get(spelling, ()) if _has(labels, name.labels)]

    if word in GAUGES:
        found = values(name.name)
        return Reading(Kind.GAUGE, max(found) if word in _FRACTIONS else sum(found)) if found else None
    sums, counts = values(f"{name.name}_sum"), values(f"{name.name}_count")
    if sums and counts:
        return Reading(Kind.HISTOGRAM, sum(sums), sum(counts))
    found = values(f"{name.name}_total") or values(name.name)
    return Reading(Kind.COUNTER, sum(found)) if found else None


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(fnmatchcase(labels.get(name, ""), value) for name, value in wanted.items())


def words_without_meaning(names: Iterable[str]) -> list[str]:
    """Words that are none of ours; a check of the table."""
    return sorted(set(names) - {*TIMES, *COUNTS, *GAUGES})
