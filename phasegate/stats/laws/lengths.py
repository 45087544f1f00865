"""Laws about a metric over lengths: it rises, it is flat, or it grows within a bound.

All take a block table: one row per repetition, one column per length, every block complete. See `blocks`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.stats.blocks import MIN_BLOCKS, Table, table_of
from phasegate.stats.equivalence import Judged, above, most_tense, within
from phasegate.stats.intervals import MeanInterval, mean_interval
from phasegate.stats.laws.common import as_ratio, percent, remedy, sentence, too_few
from phasegate.stats.laws.margins import ALPHA, TPOT_SLOPE_MARGIN, TTFT_RISE_MIN
from phasegate.stats.outcome import LawResult, Outcome
from phasegate.stats.trend import block_slopes, rising_p

PER = 1000.0
"""Slopes are told per this many tokens."""


def rises(
    levels: Sequence[float],
    samples: ArrayLike,
    *,
    minimum: float = TTFT_RISE_MIN,
    alpha: float = ALPHA,
    law: str = "rises with length",
) -> LawResult:
    """A metric rises with length: proven by rank within blocks, and by more than an immaterial amount.

    PASS needs Page's trend test and a rise from the shortest to the longest level that is surely above ``minimum``
    (fraction of the value at the shortest). FAIL means that a material rise is excluded. The effect is the
    Theil-Sen slope in seconds per 1,000 tokens.

    Args:
        levels: token counts, one per column.
        samples: blocks x levels, in seconds.
        minimum: least material rise, a fraction.
        alpha: error probability of each bound and of the trend test.
        law: the claim in words.

    Raises:
        ValueError: the table cannot be used; see `table_of`.
    """
    table = table_of(levels, samples)
    unit = "s per 1,000 tokens"
    if table.blocks < MIN_BLOCKS:
        return too_few(law, table.blocks, unit, alpha)
    slope = mean_interval(block_slopes(table), alpha)
    rise = mean_interval(table.logs[:, -1] - table.logs[:, 0], alpha)
    judged = above(rise, math.log1p(minimum))
    p = rising_p(table)
    outcome, needed = judged.outcome, judged.needed
    if outcome is Outcome.PASS and p > alpha:
        outcome, needed = Outcome.INCONCLUSIVE, table.blocks
    span = f"{table.levels[0]:g} to {table.levels[-1]:g} tokens: {percent(as_ratio(rise))}"
    reason = sentence(
        f"{format_seconds(slope.mean * PER)} per 1,000 tokens"
        f" [{format_seconds(slope.low * PER)}, {format_seconds(slope.high * PER)}]{_rate(slope)}",
        f"from {span} (trend p = {p:.2g})",
        "" if outcome is Outcome.PASS else f"a rise counts from {format_percent(minimum)}",
        remedy(table.blocks, needed),
    )
    told = slope.scaled(PER)
    return LawResult(
        law, outcome, reason, told.mean, told.low, told.high, unit, 1 - alpha, table.blocks, needed, table.warnings()
    )


def _rate(slope: MeanInterval) -> str:
    """The reading speed; nothing where the slope is not surely above zero and has no sensible inverse."""
    return f", {format_rate(1 / slope.mean, 'tokens')}" if slope.low > 0 else ""


def flat(
    levels: Sequence[float],
    samples: ArrayLike,
    *,
    margin: float,
    alpha: float = ALPHA,
    law: str = "flat in length",
) -> LawResult:
    """A metric is the same at all levels, within a margin: equivalence, not the absence of a difference.

    Every pair of levels must be equivalent by two one-sided tests on the log ratio within blocks; asking for all
    pairs needs no correction for their number. FAIL when some pair surely differs by more than the margin. The
    effect is the ratio - 1 of the pair that decides.

    Args:
        levels: token counts, one per column.
        samples: blocks x levels, in seconds (or seconds per token).
        margin: largest immaterial difference, a fraction; -log(1 + margin) counts as much as +log(1 + margin).
        alpha: error probability of each bound.
        law: the claim in words.

    Raises:
        ValueError: the table cannot be used; see `table_of`.
    """
    table = table_of(levels, samples)
    if table.blocks < MIN_BLOCKS:
        return too_few(law, table.blocks, "fraction", alpha)
    logs, limit = table.logs, math.log1p(margin)
    parts: list[tuple[Judged, str]] = []
    for i, j in itertools.combinations(range(table.levels.size), 2):
        judged = within(mean_interval(logs[:, j] - logs[:, i], alpha), -limit, limit)
        parts.append((judged, f"{table.levels[i]:g} and {table.levels[j]:g} tokens"))
    worst = most_tense([judged for judged, _ in parts])
    pair = next(name for judged, name in parts if judged is worst)
    needed = _most_needed([judged for judged, _ in parts], worst.outcome)
    told = as_ratio(worst.interval)
    place = {
        Outcome.PASS: "all pairs within",
        Outcome.FAIL: "surely beyond",
        Outcome.INCONCLUSIVE: "neither surely within nor beyond",
    }[worst.outcome]
    reason = sentence(
        f"between {pair} the difference is {percent(told)}, {place} {format_percent(margin)}",
        remedy(table.blocks, needed),
    )
    return LawResult(
        law, worst.outcome, reason, told.mean, told.low, told.high, "fraction", 1 - alpha, table.blocks, needed,
        table.warnings(),
    )  # fmt: skip


def _most_needed(parts: list[Judged], outcome: Outcome) -> int | None:
    if outcome is not Outcome.INCONCLUSIVE:
        return None
    return max(part.needed for part in parts if part.needed is not None)


def bounded_slope(
    levels: Sequence[float],
    samples: ArrayLike,
    *,
    margin: float = TPOT_SLOPE_MARGIN,
    alpha: float = ALPHA,
    law: str = "grows with length within its bound",
) -> LawResult:
    """A metric's slope over length is surely within a margin, up or down.

    The effect is the Theil-Sen slope per 1,000 tokens as a fraction of the value at the shortest level.

    Args:
        levels: token counts, one per column.
        samples: blocks x levels, in seconds (or seconds per token).
        margin: largest slope, a fraction per 1,000 tokens.
        alpha: error probability of each bound.
        law: the claim in words.

    Raises:
        ValueError: the table cannot be used; see `table_of`.
    """
    table = table_of(levels, samples)
    unit = "fraction per 1,000 tokens"
    if table.blocks < MIN_BLOCKS:
        return too_few(law, table.blocks, unit, alpha)
    told = _relative_slope(table, alpha)
    judged = within(told, -margin, margin)
    place = {
        Outcome.PASS: "within",
        Outcome.FAIL: "surely beyond",
        Outcome.INCONCLUSIVE: "neither surely within nor beyond",
    }[judged.outcome]
    reason = sentence(
        f"{percent(told)} per 1,000 tokens, {place} {format_percent(margin)}",
        remedy(table.blocks, judged.needed),
    )
    return LawResult(
        law, judged.outcome, reason, told.mean, told.low, told.high, unit, 1 - alpha, table.blocks, judged.needed,
        table.warnings(),
    )  # fmt: skip


def _relative_slope(table: Table, alpha: float) -> MeanInterval:
    reference = float(np.median(table.values[:, 0]))
    return mean_interval(block_slopes(table), alpha).scaled(PER / reference)
