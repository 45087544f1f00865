"""The law of the straight line: total = TTFT + TPOT x (N - 1).

Each block gives one line, fitted by weighted least squares over x = N - 1, since the first token has come when TTFT
ends and N tokens have N - 1 gaps; over x = N - k where the first token event holds k tokens. Weights are 1 / total^2:
noise is a share of the total. Three parts must all hold: no step or bend between any two neighbouring lengths, the
start of the line is TTFT, its slope is TPOT. For any one request total = TTFT + TPOT x (N - 1) is arithmetic; the law
is that one line serves requests of all lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegate.core.units import format_percent, format_seconds
from phasegate.stats.blocks import MIN_BLOCKS, Table, table_of
from phasegate.stats.equivalence import Judged, most_tense, within
from phasegate.stats.first_event import ONE_TOKEN, FirstEvent
from phasegate.stats.intervals import mean_interval
from phasegate.stats.laws.common import percent, remedy, sentence, too_few
from phasegate.stats.laws.first_chunk import per_token, too_short, under_each
from phasegate.stats.laws.margins import (
    ALPHA,
    LINEAR_INTERCEPT_MARGIN,
    LINEAR_INTERCEPT_TOKENS,
    LINEAR_STEP_MARGIN,
    TPOT_FLAT_MARGIN,
)
from phasegate.stats.outcome import LawResult, Outcome, combined


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of the law: how it was judged and what it says, with the margin it was held against."""

    judged: Judged
    words: str
    margin: float


def linear(
    levels: Sequence[float],
    totals: ArrayLike,
    *,
    ttft: ArrayLike,
    tpot: ArrayLike,
    first: FirstEvent = ONE_TOKEN,
    step_margin: float = LINEAR_STEP_MARGIN,
    intercept_margin: float = LINEAR_INTERCEPT_MARGIN,
    slope_margin: float = TPOT_FLAT_MARGIN,
    alpha: float = ALPHA,
    law: str = "total is linear in output length",
) -> LawResult:
    """The total is a straight line over the output length, which starts at TTFT and climbs by TPOT a token.

    The effect is that of the part that decides: a step as a fraction of the total behind it, the intercept's or the
    slope's difference as a fraction of TTFT or TPOT. The reason names all three.

    Args:
        levels: output tokens, one per column; three different ones or more, each at least 2.
        totals, ttft, tpot: blocks x levels, in seconds (TPOT: seconds per token, as the metric defines it), the same
            blocks in each.
        first: tokens of the first token event.
        step_margin: largest step or bend, a fraction of the total behind it.
        intercept_margin: largest difference of the line's start from TTFT, a fraction of TTFT; two TPOTs are
            always allowed.
        slope_margin: largest difference of the line's slope from TPOT, a fraction.
        alpha: error probability of each bound.
        law: the claim in words.

    Raises:
        ValueError: a table cannot be used; see `table_of`.
    """
    return too_short(levels, first, law, alpha) or under_each(
        first,
        lambda held: _judged(
            [table_of(levels, one, least_levels=3) for one in (totals, ttft, per_token(levels, tpot, held))],
            held,
            (step_margin, intercept_margin, slope_margin),
            alpha,
            law,
        ),
    )


def _judged(
    tables: Sequence[Table], held: float, margins: tuple[float, float, float], alpha: float, law: str
) -> LawResult:
    """The law on totals, TTFT and time per token, with a first event of ``held`` tokens."""
    counts = [table.blocks for table in tables]
    if min(counts) < MIN_BLOCKS:
        return too_few(law, min(counts), "fraction", alpha)
    if len(set(counts)) > 1:
        raise ValueError(f"totals, ttft and tpot have {counts} blocks; pass the same blocks in each")
    total, first, each = tables
    step, intercept, slope = margins
    parts = [
        _worst_step(total, held, step, alpha),
        _intercept(total, first, each, held, intercept, alpha),
        _slope(total, each, held, slope, alpha),
    ]
    outcome = combined(part.judged.outcome for part in parts)
    deciding = most_tense([part.judged for part in parts])
    needed = max((part.judged.needed or 0) for part in parts) if outcome is Outcome.INCONCLUSIVE else None
    told = deciding.interval
    said = [part.words + _verdict(part) for part in parts]
    reason = sentence(*said, remedy(total.blocks, needed))
    return LawResult(
        law, outcome, reason, told.mean, told.low, told.high, "fraction", 1 - alpha, total.blocks, needed,
        total.warnings(),
    )  # fmt: skip


def _verdict(part: _Part) -> str:
    allowed = format_percent(part.margin)
    return {
        Outcome.PASS: f" (allowed: {allowed})",
        Outcome.FAIL: f", surely beyond {allowed}",
        Outcome.INCONCLUSIVE: f", neither surely within nor beyond {allowed}",
    }[part.judged.outcome]


def _worst_step(total: Table, held: float, margin: float, alpha: float) -> _Part:
    """A step between every pair of neighbouring lengths, each estimated beside a line; the worst one tells.

    With a step term between each pair, a step shows wherever it stands, and a bend shows as a step at its place.
    """
    size = np.median(total.values, axis=0)
    judged: list[Judged] = []
    places: list[str] = []
    for k in range(1, total.levels.size):
        step = (np.arange(total.levels.size) >= k).astype(np.float64)
        found = _fits(total, held, step)[:, 2] / size[k]
        judged.append(within(mean_interval(found, alpha), -margin, margin))
        places.append(f"between {total.levels[k - 1]:g} and {total.levels[k]:g} tokens")
    worst = most_tense(judged)
    where = places[judged.index(worst)]
    return _Part(worst, f"largest step {percent(worst.interval)} of the total, {where}", margin)


def _intercept(total: Table, ttft: Table, tpot: Table, held: float, margin: float, alpha: float) -> _Part:
    """The line where the first event ends, at N = ``held``, against the TTFT of the same block."""
    starts = _fits(total, held)[:, 0]
    block_ttft = np.median(ttft.values, axis=1)
    usual = float(np.median(block_ttft))
    allowed = max(margin, LINEAR_INTERCEPT_TOKENS * float(np.median(tpot.values)) / usual)
    difference = mean_interval((starts - block_ttft) / usual, alpha)
    words = f"starts at {format_seconds(float(np.median(starts)))}, {percent(difference)} from TTFT"
    return _Part(within(difference, -allowed, allowed), words, allowed)


def _slope(total: Table, tpot: Table, held: float, margin: float, alpha: float) -> _Part:
    """The line's slope against the TPOT of the same block."""
    slopes = _fits(total, held)[:, 1]
    block_tpot = np.median(tpot.values, axis=1)
    usual = float(np.median(block_tpot))
    difference = mean_interval((slopes - block_tpot) / usual, alpha)
    words = f"climbs {format_seconds(float(np.median(slopes)))} a token, {percent(difference)} from TPOT"
    return _Part(within(difference, -margin, margin), words, margin)


def _fits(total: Table, held: float, extra: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Intercept, slope and the coefficient of an extra column of every block's line: blocks x 2 or 3."""
    columns = [np.ones(total.levels.size), total.levels - held]
    if extra is not None:
        columns.append(extra)
    weight = 1 / np.median(total.values, axis=0)
    design = np.stack(columns, axis=1) * weight[:, None]
    return np.asarray((np.linalg.pinv(design) @ (total.values * weight).T).T, dtype=np.float64)
