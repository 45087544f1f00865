"""Measured values for trackers of builds: github-action-benchmark's and Bencher's own JSON.

Both keep a history of single numbers and draw it; neither knows sessions, so the verdict stays the gate's. Latencies
only: both lists are of things that are better when smaller.
"""

from __future__ import annotations

import json

from phasegate.report.document.model import Document
from phasegate.report.document.rows import MeasuredValue, measured_values

MS, NS = 1e3, 1e9


def github_action_benchmark(document: Document) -> str:
    """A list for its tool ``customSmallerIsBetter``: name, unit (ms), value, half the interval, and what it is."""
    return _text([_entry(one) for one in _latencies(document)])


def _entry(one: MeasuredValue) -> dict[str, object]:
    unit = "ms/token" if one.unit == "s/token" else "ms"
    entry: dict[str, object] = {"name": _name(one), "unit": unit, "value": _rounded(one.value * MS)}
    if one.low is not None and one.high is not None:
        entry["range"] = f"± {_rounded((one.high - one.low) / 2 * MS)}"
    entry["extra"] = f"phase: {one.phase}\nmedian of {one.n}"
    return entry


def bencher(document: Document) -> str:
    """Bencher's metric format, under its own measure ``latency``, which is in nanoseconds."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for one in _latencies(document):
        measure = {"value": round(one.value * NS, 3)}
        if one.low is not None and one.high is not None:
            measure |= {"lower_value": round(one.low * NS, 3), "upper_value": round(one.high * NS, 3)}
        found[_name(one)] = {"latency": measure}
    return _text(found)


def _latencies(document: Document) -> list[MeasuredValue]:
    return [one for one in measured_values(document) if one.better == "lower" and one.unit.startswith("s")]


def _name(one: MeasuredValue) -> str:
    return f"{one.workload} {one.metric}"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
