"""What load a GuideLLM benchmark asked for: the strategy with its streams or its rate.

A sweep finds out its rates by measuring, so that two sweeps of one server hardly ever have the same; there the rate is
something seen, which may differ a little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from phasegate.store.other_tools.identity import Identity
from phasegate.store.other_tools.result import length_or_none, mapping, text_or_none

TOOL = "guidellm"

_NAMED = re.compile(r"^(?P<kind>[A-Za-z_]+)@(?P<number>\d+(?:\.\d+)?)$")
"""A strategy as older tables name it: ``concurrent@4``, ``constant@2.50``."""


def load_of(benchmark: Mapping[str, Any]) -> Identity:
    """What a benchmark of ``benchmarks.json`` asked for."""
    config = mapping(benchmark.get("config") or benchmark.get("args"))
    strategy = mapping(config.get("strategy") or mapping(benchmark.get("scheduler")).get("strategy"))
    profile = mapping(config.get("profile") or mapping(benchmark.get("benchmarker")).get("profile"))
    backend = mapping(config.get("backend") or mapping(benchmark.get("benchmarker")).get("backend"))
    streams = strategy.get("streams")
    return _identity(
        kind=text_or_none(strategy.get("type_")),
        streams=strategy.get("max_concurrency") if streams is None else streams,
        rate=strategy.get("rate"),
        sweeps=profile.get("type_") == "sweep",
        endpoint=text_or_none(backend.get("request_format") or backend.get("request_type")),
    )


def load_of_row(cells: Mapping[str, str]) -> Identity:
    """What a row of a table asked for.

    Args:
        cells: of newer tables ``benchmark|strategy``, ``run info|profile``, ``run info|run index`` and ``run
            info|backend``; of older ones ``name`` and ``profile``.
    """
    profile = _json(cells.get("run info|profile") or cells.get("profile"))
    backend = _json(cells.get("run info|backend") or cells.get("backend"))
    sweeps = profile.get("type_") == "sweep"
    endpoint = text_or_none(backend.get("request_format") or backend.get("request_type"))
    named = _NAMED.match(cells.get("name", ""))
    if named:
        number, concurrent = float(named["number"]), named["kind"] == "concurrent"
        return _identity(
            named["kind"], number if concurrent else None, None if concurrent else number, sweeps, endpoint
        )  # fmt: skip
    kind = cells.get("benchmark|strategy") or cells.get("name") or None
    index = cells.get("run info|run index", "")
    streams = _element(profile.get("streams"), index)
    streams = _element(profile.get("max_concurrency"), index) if streams is None else streams
    return _identity(kind, streams, None if sweeps else _element(profile.get("rate"), index), sweeps, endpoint)


def model_of_row(cells: Mapping[str, str]) -> str | None:
    """The model that a row of a table names."""
    return text_or_none(_json(cells.get("run info|backend") or cells.get("backend")).get("model"))


def _identity(kind: str | None, streams: Any, rate: Any, sweeps: bool, endpoint: str | None) -> Identity:
    asked = {"endpoint": endpoint, "strategy": kind, "rate": None if sweeps else rate, "streams": streams}
    return Identity(TOOL, asked, {"rate": length_or_none(rate)} if sweeps else {})


def _element(values: Any, index: str) -> Any:
    """The value of one benchmark out of those of its profile, or the one that all have."""
    if not isinstance(values, list):
        return values
    place = int(index) if index.isdecimal() else 0
    return values[place] if place < len(values) else None


def _json(text: str | None) -> Mapping[str, Any]:
    try:
        return mapping(json.loads(text or "{}"))
    except (ValueError, RecursionError):
        return {}
