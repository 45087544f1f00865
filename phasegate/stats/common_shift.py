"""Did everything move alike? Then the host or the client is the first suspect, not the change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from phasegate.stats.compare_types import ComparedRow
from phasegate.stats.compare_words import percent

LEAST_ROWS = 4
"""Fewer comparisons make no "everything"."""

LEAST_GROUPS = 2
"""Metrics that must have moved: a change of one phase moves one only."""

SURE = 0.025
"""p below which a single comparison counts as moved."""

ALIKE = 0.4
"""Every move is at least this share of the median move, and at most its inverse."""


def common_shift(rows: Sequence[ComparedRow], groups: Sequence[str]) -> str | None:
    """One sentence where all comparisons moved the same way by about the same ratio, else None.

    Args:
        rows: judged comparisons.
        groups: the metric of each, in the same order.
    """
    pairs = [(row, group) for row, group in zip(rows, groups, strict=True) if row.d is not None and row.p is not None]
    if len(pairs) < LEAST_ROWS or len({group for _, group in pairs}) < LEAST_GROUPS:
        return None
    for worse in (True, False):
        p_values = [row.p if worse else row.p_improved for row, _ in pairs]
        moves = [abs(row.d) for row, _ in pairs if row.d is not None]
        middle = median(moves)
        if all(p is not None and p < SURE for p in p_values) and all(
            ALIKE * middle <= move <= middle / ALIKE for move in moves
        ):
            # A log ratio as the change that a reader sees: +30 % or -20 %.
            low, high = (abs(math.expm1(move if worse else -move)) for move in (min(moves), max(moves)))
            return (
                f"all {len(pairs)} comparisons of {len({group for _, group in pairs})} metrics moved alike, "
                f"{'worse' if worse else 'better'} by {percent(low)} to {percent(high)}: "
                "suspect the host or the client, and measure again"
            )
    return None
