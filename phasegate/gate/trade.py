"""A trade: one phase of a workload got faster and the other slower. A sentence about either alone would mislead."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.core.units import format_percent
from phasegate.gate.slower_phase import BOTH
from phasegate.gate.verdict import Finding, Verdict

SHARE_OF_GAIN = 0.25
"""A slowdown too small to fail belongs to a trade where it is proven and at least a quarter of what was gained."""


def trade_words(rows: Sequence[Finding], first: str | None = None) -> str:
    """The trade of one workload, ``chat ttft +20.4 %, tpot -20.1 %``, and how many more there are; empty for none.

    Args:
        rows: all rows of a build, those that only inform as well.
        first: the workload to tell of, where it has one.
    """
    found = {
        workload: words for workload in dict.fromkeys(row.workload for row in rows) if (words := _of(workload, rows))
    }
    if not found:
        return ""
    told = found.get(first or "") or next(iter(found.values()))
    more = len(found) - 1
    return f"{told} (and {more} more workload{'s' if more > 1 else ''})" if more else told


def _of(workload: str, rows: Sequence[Finding]) -> str:
    own = [row for row in rows if row.workload == workload and row.phase != BOTH and row.ratio]
    for gained in (row for row in own if row.verdict is Verdict.IMPROVED):
        for lost in (row for row in own if row.phase != gained.phase and _lost(row, gained)):
            return f"{workload} {lost.metric} {_change(lost)}, {gained.metric} {_change(gained)}"
    return ""


def _lost(row: Finding, gained: Finding) -> bool:
    return row.verdict is Verdict.REGRESSION or (
        row.proven_slower and _size(row) >= SHARE_OF_GAIN * _size(gained)
    )  # fmt: skip


def _size(row: Finding) -> float:
    """The size of a change, whichever way the metric points, as a fraction."""
    assert row.ratio
    return max(row.ratio, 1.0 / row.ratio) - 1.0


def _change(row: Finding) -> str:
    return format_percent(None if row.ratio is None else row.ratio - 1, signed=True)
