"""Laws under load: several streams share a step of decode, and a long prompt stalls the others by a bounded gap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from phasegate.core.units import format_seconds
from phasegate.stats.blocks import MIN_BLOCKS, table_of
from phasegate.stats.equivalence import above
from phasegate.stats.intervals import mean_interval
from phasegate.stats.laws.common import as_ratio, remedy, sentence, too_few
from phasegate.stats.laws.margins import ALPHA, AMORTISE_MIN
from phasegate.stats.outcome import LawResult, Outcome


def amortises(
    single: ArrayLike,
    batched: ArrayLike,
    *,
    factor: float = AMORTISE_MIN,
    alpha: float = ALPHA,
    law: str = "batching amortises decode",
) -> LawResult:
    """Output throughput under several streams is surely more than ``factor`` times that of one stream.

    The effect is the ratio of throughputs. FAIL when it is surely below the factor.

    Args:
        single, batched: output tokens per second with one stream and with several, n values each, paired by block.
        factor: least ratio.
        alpha: error probability of each bound.
        law: the claim in words.

    Raises:
        ValueError: the two differ in length or hold values that are not positive and finite.
    """
    one, several = (np.asarray(column, dtype=np.float64).ravel() for column in (single, batched))
    if one.size != several.size:
        raise ValueError(f"single and batched have {one.size} and {several.size} values; they must pair by block")
    table = table_of((0, 1), np.stack((one, several), axis=1))
    if table.blocks < MIN_BLOCKS:
        return too_few(law, table.blocks, "ratio", alpha)
    logs = mean_interval(table.logs[:, 1] - table.logs[:, 0], alpha)
    judged = above(logs, math.log(factor))
    ratio = as_ratio(logs)
    mean, low, high = 1 + ratio.mean, 1 + ratio.low, 1 + ratio.high
    reason = sentence(
        f"throughput is {mean:.2f} times that of one stream [{low:.2f}, {high:.2f}], {factor:g} are asked for",
        remedy(table.blocks, judged.needed),
    )
    return LawResult(
        law, judged.outcome, reason, mean, low, high, "ratio", 1 - alpha, table.blocks, judged.needed, table.warnings()
    )


def stall_bounded(
    longest_gaps: ArrayLike,
    *,
    bound: float,
    alpha: float = ALPHA,
    law: str = "a long prompt stalls other streams by a bounded gap",
) -> LawResult:
    """The typical longest gap that a colliding prefill causes in the other streams is surely below a bound.

    The effect is the geometric mean of the gaps in seconds. FAIL when it is surely above the bound.

    Args:
        longest_gaps: the longest gap of each collision, in seconds.
        bound: largest gap allowed, in seconds.
        alpha: error probability of each bound of the interval.
        law: the claim in words.

    Raises:
        ValueError: a gap is not a positive, finite number.
    """
    gaps = np.asarray(longest_gaps, dtype=np.float64).ravel()
    if not (np.isfinite(gaps).all() and (gaps > 0).all()):
        raise ValueError("longest gaps must be positive, finite seconds")
    if gaps.size < MIN_BLOCKS:
        return too_few(law, int(gaps.size), "s", alpha)
    headroom = mean_interval(math.log(bound) - np.log(gaps), alpha)
    judged = above(headroom, 0.0)
    low, mean, high = (bound * math.exp(-x) for x in (headroom.high, headroom.mean, headroom.low))
    place = {Outcome.PASS: "surely below", Outcome.FAIL: "surely above"}.get(judged.outcome, "not clear of")
    reason = sentence(
        f"a collision stalls a stream for {format_seconds(mean)} [{format_seconds(low)}, {format_seconds(high)}], "
        f"{place} {format_seconds(bound)}",
        remedy(headroom.n, judged.needed),
    )
    return LawResult(law, judged.outcome, reason, mean, low, high, "s", 1 - alpha, headroom.n, judged.needed)
