"""Findings and measured values of a document as flat rows: for CSV, other tables, and trackers of builds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phasegate.report.document.model import Document, Estimate, Row


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One measured value of a run, in SI units.

    Attributes:
        workload, metric: what was measured, such as ``chat[in=64,out=32]`` and ``ttft``.
        phase: ``prefill``, ``decode`` or ``both``.
        unit: ``s``, ``s/token`` or a rate such as ``tokens/s``.
        better: ``lower`` or ``higher``.
        value: median of the sessions where the gate measured some, else of the requests of the one session.
        low, high: 95 % interval of ``value``; None where there is none.
        n: sessions or requests behind it.
    """

    workload: str
    metric: str
    phase: str
    unit: str
    better: str
    value: float
    low: float | None
    high: float | None
    n: int


def measured_values(document: Document) -> list[MeasuredValue]:
    """Every workload and metric once: the gate's median over sessions where there is one, else the lab's own."""
    found = {(one.workload, one.metric): one for one in _of_runner(document)}
    found.update({(one.workload, one.metric): one for one in _of_gate(document)})
    return [found[key] for key in sorted(found)]


def _of_gate(document: Document) -> Iterator[MeasuredValue]:
    for row in document.gate.rows if document.gate is not None else ():
        if row.candidate_value is not None and row.metric.count(":") < 2:
            yield MeasuredValue(
                row.workload, row.metric, row.phase, row.unit, row.better, row.candidate_value,
                min(row.candidate_levels, default=None), max(row.candidate_levels, default=None),
                row.candidate_sessions,
            )  # fmt: skip


_LAB = (("ttft", "prefill", "s"), ("tpot", "decode", "s/token"), ("e2el", "both", "s"))


def _of_runner(document: Document) -> Iterator[MeasuredValue]:
    for table in document.workloads:
        for cell in table.cells:
            for metric, phase, unit in _LAB:
                one: Estimate | None = getattr(cell, metric)
                if one is not None and one.value is not None:
                    yield MeasuredValue(
                        cell.label, metric, phase, unit, "lower", one.value, one.low, one.high, one.n
                    )  # fmt: skip


FINDING_COLUMNS = (
    "kind", "workload", "metric", "phase", "gated", "verdict", "unit", "baseline", "now", "ratio", "ratio_low",
    "ratio_high", "smallest_found", "tolerance", "fails_from", "p", "p_allowed", "baseline_n", "now_n", "reason",
)  # fmt: skip
"""Columns of `finding_rows`: values in SI units, fractions as fractions, empty for what is not known."""


def finding_rows(document: Document) -> list[tuple[str, ...]]:
    """One row for each comparison, law and objective, in the order of `FINDING_COLUMNS`."""
    rows = [_comparison(row) for row in (document.gate.rows if document.gate is not None else ())]
    for law in document.laws:
        rows.append(_row(
            "law", metric=law.law, verdict=law.outcome, unit=law.unit, now=law.effect, ratio_low=None, now_n=law.n,
            reason=law.reason,
        ))  # fmt: skip
    for one in document.load.objectives if document.load is not None else ():
        level = f"{one.level:g} {'requests/s' if one.by_rate else 'at a time'}"
        rows.append(_row(
            "objective", workload=level, metric=one.objective, phase=one.phase, gated=True, verdict=one.verdict,
            unit="fraction of requests", now=one.missed, tolerance=1 - one.percentile / 100, reason=one.reason,
        ))  # fmt: skip
    return rows


def _comparison(row: Row) -> tuple[str, ...]:
    kind = "objective" if row.metric.count(":") == 2 else "comparison"
    return _row(
        kind, workload=row.workload, metric=row.metric, phase=row.phase, gated=row.gated, verdict=row.verdict,
        unit=row.unit, baseline=row.baseline_value, now=row.candidate_value, ratio=row.ratio, ratio_low=row.ratio_low,
        ratio_high=row.ratio_high, smallest_found=row.mde, tolerance=row.tolerance,
        fails_from=row.fails_from, p=row.p, p_allowed=row.p_allowed,
        baseline_n=row.baseline_sessions, now_n=row.candidate_sessions, reason=row.reason,
    )  # fmt: skip


def _row(kind: str, **given: str | float | bool | None) -> tuple[str, ...]:
    return tuple(kind if name == "kind" else _text(given.get(name)) for name in FINDING_COLUMNS)


def _text(value: str | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.6g}"
