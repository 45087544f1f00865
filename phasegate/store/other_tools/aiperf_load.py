"""Which load a run of AIPerf (or GenAI-Perf) was: model, endpoint, and concurrency or rate.

The summary beside the records holds the whole configuration. Where there is none, folders of a sweep are named after
what it varies (``concurrency_8``, ``phases.profiling.concurrency=8``); where they are not, a closed loop shows by the
number of requests in flight, which stays at the concurrency from the first requests to the last.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phasegate.store.other_tools.result import mapping, text_or_none

TOOL = "aiperf"

SUMMARIES = ("{stem}_aiperf.json", "{stem}_genai_perf.json")
"""Names of the summary of a run, from the stem of its records."""

_PARENTS = 3
"""How many folders above a file may be named after a part of a sweep."""

_SWEPT = re.compile(r"(?:^|[^a-z])(concurrency|request_rate|rate)[=_-]?(\d+(?:\.\d+)?)(?![\d.]*\w)", re.IGNORECASE)
_VARIED = re.compile(r"([A-Za-z_][\w.]*)=([^=,;&]+)")

_REPEATS = ("run", "trial", "repeat", "iteration")
"""What numbers repetitions and varies no load."""

_STEADY = 0.6
"""Share of a run's time with the largest number of requests in flight that only a closed loop has."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a load: its parts, and the model."""

    asked: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None


def load_in(config: Any) -> Told:
    """The load of a resolved configuration; layouts differ between versions."""
    endpoint = mapping(mapping(config).get("endpoint"))
    rate = _find(config, "request_rate")
    asked = {
        "endpoint": text_or_none(endpoint.get("type")) or _find(config, "endpoint_type"),
        "rate": _find(config, "rate") if rate is None else rate,
        "concurrency": _find(config, "concurrency"),
    }
    return Told(asked, _model(mapping(config), endpoint))


def _model(config: Mapping[str, Any], endpoint: Mapping[str, Any]) -> str | None:
    models = mapping(config.get("models")).get("items")
    names = [mapping(one).get("name") for one in models] if isinstance(models, list) else []
    for value in (names, endpoint.get("model_names"), config.get("model_names"), config.get("model")):
        told = value if isinstance(value, list) else [value]
        known = [name for one in told if (name := text_or_none(one)) is not None]
        if known:
            return ",".join(known)
    return None


def _find(config: Any, key: str) -> Any:
    """The first plain value of a key anywhere in a configuration, warm-up phases left out."""
    if isinstance(config, list):
        return next((found for child in config if (found := _find(child, key)) is not None), None)
    if not isinstance(config, dict) or config.get("exclude_from_results") is True or config.get("kind") == "warmup":
        return None
    value = config.get(key)
    if value is not None and not isinstance(value, (dict, list, bool)):
        return value
    children = (child for name, child in config.items() if name != "warmup")
    return next((found for child in children if (found := _find(child, key)) is not None), None)


def load_beside(path: Path) -> Told:
    """The load of a file without a configuration: from the summary beside it, or else from the names of its folders."""
    stem = path.name.split(".")[0].removesuffix("_aiperf").removesuffix("_genai_perf")
    for name in SUMMARIES:
        try:
            document = json.loads((path.parent / name.format(stem=stem)).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            continue
        told = load_in(mapping(document).get("input_config"))
        if told.model or any(value is not None for value in told.asked.values()):
            return told
    return Told(dict(_named_parts(path)))


def _named_parts(path: Path) -> Iterator[tuple[str, str]]:
    for folder in list(path.absolute().parents)[:_PARENTS]:
        for key, value in _VARIED.findall(folder.name):
            name = key.split(".")[-1].lower()
            if not name.startswith(_REPEATS):
                yield ("rate" if name == "request_rate" else name), value
        for name, value in _SWEPT.findall(folder.name):
            yield ("concurrency" if name.lower() == "concurrency" else "rate"), value


def steady_concurrency(requests: Sequence[Mapping[str, Any]]) -> int | None:
    """The concurrency of a closed loop, from when its requests began and ended; None where the load was another.

    Args:
        requests: metadata with ``request_start_ns`` and ``request_end_ns``.
    """
    spans = [(one.get("request_start_ns"), one.get("request_end_ns")) for one in requests]
    known = [(start, end) for start, end in spans if isinstance(start, int) and isinstance(end, int) and start < end]
    events = sorted([(start, 1) for start, _ in known] + [(end, -1) for _, end in known])
    flying, lasted = 0, dict[int, int]()
    for (at, step), (following, _) in itertools.pairwise(events):
        flying += step
        lasted[flying] = lasted.get(flying, 0) + following - at
    most = max(lasted, default=0)
    # One at a time is what any slow trickle of requests looks like, too.
    return most if most >= 2 and lasted[most] >= _STEADY * sum(lasted.values()) else None
