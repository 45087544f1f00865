"""The tables of the lab: what each length did to each phase, and one line that says which phase it fell on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.core.units import format_percent, format_seconds, format_span
from phasegate.core.workload import Cell
from phasegate.stats.intervals import MedianInterval, median_interval
from phasegate.stats.workload_run import WorkloadRun

COLUMNS = (("ttft", "TTFT"), ("tpot", "TPOT"), ("e2el", "total"))
"""Metric and heading of each column of the lab's tables."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cell of a workload, summarised.

    Attributes:
        cell: the cell.
        values: one median with its interval per column of `COLUMNS`; None where no sample has the metric.
        requests: usable requests.
        cached_tokens: median of the cached tokens that the server reported; None where it reports none.
    """

    cell: Cell
    values: tuple[MedianInterval | None, ...]
    requests: int
    cached_tokens: float | None

    def median(self, column: int) -> float | None:
        """The median of a column, or None."""
        value = self.values[column]
        return None if value is None else value.median


def rows_of(run: WorkloadRun) -> list[Row]:
    """One row per cell, in the order of the workload."""
    return [_row(run, cell) for cell in run.workload.cells]


def _row(run: WorkloadRun, cell: Cell) -> Row:
    samples = [list(run.values(metric, cell).values()) for metric, _ in COLUMNS]
    cached = [line.cached_tokens for line in run.timelines(cell) if line.cached_tokens is not None]
    return Row(
        cell=cell,
        values=tuple(median_interval(values) if values else None for values in samples),
        requests=max(map(len, samples)),
        cached_tokens=float(np.median(cached)) if cached else None,
    )


def show_interval(value: MedianInterval | None) -> str:
    """A median with its interval; without it where too few samples give none; a dash for no sample at all."""
    return "-" if value is None else format_span(value.median, value.low, value.high)


def attribution(rows: Sequence[Row], axis: str) -> str | None:
    """One line: what growing lengths did to TTFT, TPOT and total, and on which phase the added time fell.

    ``axis`` is ``"prompt"`` or ``"output"``. None when the medians are missing or nothing grew.
    """
    first, last = rows[0], rows[-1]
    medians = [(first.median(i), last.median(i)) for i in range(len(COLUMNS))]
    pairs = [(a, b) for a, b in medians if a is not None and b is not None]
    if len(pairs) < len(COLUMNS) or pairs[0][0] <= 0 or pairs[2][0] <= 0:
        return None
    (ttft_a, ttft_b), (tpot_a, tpot_b), (total_a, total_b) = pairs
    lengths = (first.cell.input_tokens, last.cell.input_tokens)
    if axis == "output":
        lengths = (first.cell.output_tokens, last.cell.output_tokens)
    added = total_b - total_a
    parts = [
        f"{axis} x{lengths[1] / lengths[0]:g}",
        f"TTFT {_grown(ttft_a, ttft_b)}",
        f"TPOT {_grown(tpot_a, tpot_b)}",
        f"total {_grown(total_a, total_b)}",
    ]
    if added <= 0:
        return f"{parts[0]}: {', '.join(parts[1:])} -> no phase grew"
    prefill = min(max((ttft_b - ttft_a) / added, 0.0), 1.0)
    phase, share = ("prefill", prefill) if prefill >= 0.5 else ("decode", 1 - prefill)
    return (
        f"{parts[0]}: {', '.join(parts[1:])} -> {phase} "
        f"({format_percent(share, digits=0)} of the {format_seconds(added)} that were added)"
    )


def _grown(before: float, after: float) -> str:
    return format_percent(after / before - 1, signed=True, digits=0) if before > 0 else "-"


def cache_lines(rows: Sequence[Row]) -> list[str]:
    """The prefix-cache demonstration: the first call, the second, what it saved, and the control."""
    by_role = {row.cell.role: row for row in rows}
    before = by_role.get("cold") or by_role.get("first")
    after = by_role.get("cached") or by_role.get("next")
    if before is None or after is None:
        return []
    cold, warm = before.median(0), after.median(0)
    if cold is None or warm is None or cold <= 0:
        return []
    evidence = "cached tokens not reported"
    if after.cached_tokens is not None:
        evidence = f"{after.cached_tokens:.0f} of {after.cell.input_tokens} prompt tokens from the cache"
    saving = format_percent(1 - warm / cold, digits=0)
    lines = [f"{before.cell.role} {format_seconds(cold)}, {after.cell.role} {format_seconds(warm)}: "
             f"saves {format_seconds(cold - warm)} of TTFT ({saving}); {evidence}"]  # fmt: skip
    control = by_role["control"].median(0) if "control" in by_role else None
    if control is not None:
        lines.append(f"control (a new prompt of the same length): {format_seconds(control)}")
    return lines
