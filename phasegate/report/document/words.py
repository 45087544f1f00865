"""Words for the values of a document, the same in every report."""

from __future__ import annotations

from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.report.document.model import Gate, Row

_NAMES = {
    "ttft": "TTFT",
    "ttfo": "TTFO",
    "tpot": "TPOT",
    "e2el": "total latency",
    "icl": "inter-chunk latency",
    "ttft_from_due": "TTFT from due",
    "e2el_from_due": "total latency from due",
}


def metric_name(metric: str) -> str:
    """A metric for readers: ``ttft:p95`` -> ``TTFT p95``; an objective's limit is left out."""
    name, *rest = metric.split(":")
    shown = _NAMES.get(name, name.replace("_", " "))
    return f"{shown} {rest[0]}" if rest else shown


def show(amount: float | None, unit: str) -> str:
    """A value in its unit, for readers; a dash for None."""
    if amount is None:
        return "-"
    if unit == "s/token":
        return f"{format_seconds(amount)}/token"
    if unit == "s":
        return format_seconds(amount)
    return format_rate(amount, unit.removesuffix("/s")) if unit.endswith("/s") else f"{amount:.4g}"


def value(row: Row, *, before: bool = False) -> str:
    """The row's value now, or that of the baseline."""
    return show(row.baseline_value if before else row.candidate_value, row.unit)


def values_words(row: Row) -> str:
    """``TTFT went from 12.0 ms to 18.1 ms (+51.0 %)``: what it was, what it is, and the change."""
    return f"{metric_name(row.metric)} went from {value(row, before=True)} to {value(row)} ({change(row)})"


def short_pair(row: Row) -> tuple[str, str]:
    """Both values for a narrow column: the unit once where both have the same."""
    before, now = value(row, before=True), value(row)
    number, space, unit = before.partition(" ")
    return (number if space and now.endswith(f" {unit}") else before), now


def source_words(source: str) -> str:
    """Where a number of the policy came from, without the folders: ``policy.yaml:12``."""
    return source.replace("\\", "/").rsplit("/", 1)[-1]


def change(row: Row) -> str:
    """The change in per cent, signed."""
    return format_percent(None if row.ratio is None else row.ratio - 1, signed=True)


def worse_by(fraction: float, better: str) -> float:
    """A worsening as a change of the value: 0.05 where lower is better, 1 / 1.05 - 1 = -0.048 where higher is."""
    return fraction if better == "lower" else 1.0 / (1.0 + fraction) - 1.0


def interval(row: Row) -> str:
    """The change's interval: ``+19.7 % to +20.9 %``; a dash where there is none."""
    if row.ratio_low is None or row.ratio_high is None:
        return "-"
    low, high = (format_percent(end - 1, signed=True) for end in (row.ratio_low, row.ratio_high))
    return f"{low} to {high}"


def sessions_words(row: Row, gate: Gate | None) -> str:
    """On how many sessions or blocks a row stands."""
    unit = gate.unit if gate is not None else "session"
    if unit == "block":
        return plural(row.candidate_sessions, "block")
    return f"{row.baseline_sessions} baseline and {plural(row.candidate_sessions, f'new {unit}')}"


def other_side(gate: Gate | None) -> str:
    """What the rows compare with: stored sessions are a baseline, a server beside the candidate is a reference."""
    return "reference" if gate is not None and gate.unit == "block" else "baseline"


def this_side(gate: Gate | None) -> str:
    """What is compared: ``now``, or the ``candidate`` of two servers measured at the same time."""
    return "candidate" if gate is not None and gate.unit == "block" else "now"


def plural(count: int, what: str) -> str:
    """``1 session``, ``2 sessions``."""
    return f"{count} {what}{'' if count == 1 else 's'}"
