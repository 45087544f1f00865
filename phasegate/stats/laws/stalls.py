"""The law of the steady stream: once tokens flow, no gap is far longer than the others.

Requests are the unit, since the stalls of one request share a cause. A host's own hiccup stalls a request now and
then; the law is an acceptance test with two shares: up to one is tolerated, from the other on it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phasegate.core.units import format_percent, format_seconds
from phasegate.stats.intervals import MOST_NEEDED, ProportionInterval, proportion_interval
from phasegate.stats.laws.margins import ALPHA, STALL_FACTOR, STALL_FLOOR, STALLED_REFUSED, STALLED_TOLERATED
from phasegate.stats.outcome import LawResult, Outcome

UNIT = "fraction of requests"

BURST_SHARE = 0.1
"""Gaps below this share of the mean gap lie inside a burst: tokens that came in one network read or one
speculative step. They say nothing about the time between steps."""


@dataclass(frozen=True, slots=True)
class Longest:
    """The longest gap of all: seconds, request (counted from 1, as passed) and the token event it follows."""

    seconds: float
    request: int
    after: int


def no_stalls(
    gaps: Sequence[Sequence[float]],
    *,
    factor: float = STALL_FACTOR,
    floor: float = STALL_FLOOR,
    tolerated: float = STALLED_TOLERATED,
    refused: float = STALLED_REFUSED,
    alpha: float = ALPHA,
    law: str = "no stalls inside a stream",
) -> LawResult:
    """Streams do not stall: a gap above ``factor`` usual gaps + ``floor`` happens in hardly any request.

    PASS when the share of stalled requests is surely below ``refused`` and not proven above ``tolerated``; FAIL when
    it is surely above ``tolerated``. One stall alone is a warning that names its place.

    Args:
        gaps: per request the gaps between its token events in seconds; requests without a gap are left out.
        factor, floor: what makes a gap a stall; the floor in seconds.
        tolerated, refused: shares of requests.
        alpha: error probability of each bound.
        law: the claim in words.

    Raises:
        ValueError: a gap is negative or not finite.
    """
    streams = [(number, np.asarray(one, dtype=np.float64)) for number, one in enumerate(gaps, 1) if len(one)]
    if any(not np.isfinite(one).all() or (one < 0).any() for _, one in streams):
        raise ValueError("gaps must be finite seconds of at least 0, in order")
    if not streams:
        needed = _needed(0, 0, tolerated, refused, alpha)
        reason = f"no request had two token events; measure {needed} requests with longer answers"
        return LawResult(law, Outcome.INCONCLUSIVE, reason, None, None, None, UNIT, 1 - alpha, 0, needed)
    usual = usual_gap([one for _, one in streams])
    limit = factor * usual + floor
    stalled = [number for number, one in streams if float(one.max()) > limit]
    share = proportion_interval(len(stalled), len(streams), alpha)
    outcome = _outcome(share, tolerated, refused)
    needed_more = _needed(share.hits, share.n, tolerated, refused, alpha) if outcome is Outcome.INCONCLUSIVE else None
    longest = _longest(streams)
    reason = _reason(share, outcome, limit, usual, longest, tolerated, refused, needed_more)
    return LawResult(
        law, outcome, reason, share.share, share.low, share.high, UNIT, 1 - alpha, share.n, needed_more,
        _warnings(stalled, outcome, longest),
    )  # fmt: skip


def usual_gap(streams: Sequence[NDArray[np.float64]]) -> float:
    """The gap between two steps of the server: the median over all gaps that do not lie inside a burst.

    What counts as a burst is taken from the requests' mean gaps, each without its longest, so that neither a stall
    nor a run of tokens in one read moves it. Seconds; 0.0 when every gap is 0.
    """
    means = [float(np.sort(one)[:-1].mean()) if one.size > 1 else float(one[0]) for one in streams]
    burst = BURST_SHARE * float(np.median(means))
    pooled = np.concatenate(list(streams))
    steps = pooled[(pooled >= burst) & (pooled > 0)]
    return float(np.median(steps)) if steps.size else 0.0


def _outcome(share: ProportionInterval, tolerated: float, refused: float) -> Outcome:
    if share.low > tolerated:
        return Outcome.FAIL
    return Outcome.PASS if share.high < refused else Outcome.INCONCLUSIVE


def _needed(hits: int, n: int, tolerated: float, refused: float, alpha: float) -> int:
    """More requests that would decide if the share stays as it is."""
    for more in range(1, MOST_NEEDED):
        size = n + more
        expected = hits if n == 0 else math.floor(hits * size / n)
        if _outcome(proportion_interval(expected, size, alpha), tolerated, refused) is not Outcome.INCONCLUSIVE:
            return more
    return MOST_NEEDED


def _longest(streams: Sequence[tuple[int, NDArray[np.float64]]]) -> Longest:
    number, one = max(streams, key=lambda stream: float(stream[1].max()))
    return Longest(float(one.max()), number, int(one.argmax()) + 1)


def _reason(
    share: ProportionInterval,
    outcome: Outcome,
    limit: float,
    usual: float,
    longest: Longest,
    tolerated: float,
    refused: float,
    needed: int | None,
) -> str:
    place = f"longest gap {format_seconds(longest.seconds)} after token event {longest.after} of request"
    words = (
        f"{share.hits} of {share.n} requests had a gap above {format_seconds(limit)} (usual gap"
        f" {format_seconds(usual)}); {place} {longest.request}"
    )
    if outcome is Outcome.FAIL:
        return f"{words}; surely more than the {format_percent(tolerated)} that a host may cause"
    if outcome is Outcome.INCONCLUSIVE:
        return f"{words}; {format_percent(refused)} cannot be excluded: measure {needed} more requests"
    return words


def _warnings(stalled: Sequence[int], outcome: Outcome, longest: Longest) -> tuple[str, ...]:
    if not stalled or outcome is Outcome.FAIL:
        return ()
    names = ", ".join(str(number) for number in stalled)
    return (
        f"stalled: request {names}; the longest, {format_seconds(longest.seconds)}, came after token event"
        f" {longest.after}: look at what the server and its host did then",
    )
