"""From an interval and a margin to a word: the only place where laws turn numbers into outcomes.

PASS needs the whole interval on the right side of the margin, FAIL needs it wholly on the wrong side, and what
covers a margin is INCONCLUSIVE with the number of blocks that would probably decide it. Absence of evidence for a
difference is never taken for evidence of its absence.
"""

from __future__ import annotations

from dataclasses import dataclass

from phasegate.stats.intervals import MeanInterval, more_needed
from phasegate.stats.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Judged:
    """One interval held against its margin.

    Attributes:
        outcome: the word.
        interval: what was judged.
        needed: how many more blocks would probably decide; None when decided.
        tension: how far the estimate is on the wrong side: below 1 inside the margin, above 1 outside.
    """

    outcome: Outcome
    interval: MeanInterval
    needed: int | None
    tension: float


def within(interval: MeanInterval, low: float, high: float) -> Judged:
    """Equivalence by two one-sided tests: PASS when the interval lies within (low, high).

    FAIL when it lies wholly outside; ``low`` is negative and ``high`` positive.
    """
    tension = max(interval.mean / high, interval.mean / low)
    if low < interval.low and interval.high < high:
        return Judged(Outcome.PASS, interval, None, tension)
    if interval.high < low or interval.low > high:
        return Judged(Outcome.FAIL, interval, None, tension)
    covered = [bound for bound in (low, high) if interval.low <= bound <= interval.high]
    return Judged(Outcome.INCONCLUSIVE, interval, more_needed(interval, covered), tension)


def above(interval: MeanInterval, bound: float) -> Judged:
    """Superiority by more than a bound: PASS when the interval lies above it, FAIL when wholly below."""
    tension = 2.0 if interval.mean <= 0 else bound / interval.mean
    if interval.low > bound:
        return Judged(Outcome.PASS, interval, None, tension)
    if interval.high < bound:
        return Judged(Outcome.FAIL, interval, None, tension)
    return Judged(Outcome.INCONCLUSIVE, interval, more_needed(interval, [bound]), tension)


def most_tense(parts: list[Judged]) -> Judged:
    """The part that decides: the worst outcome, and of several such the one furthest beyond its margin."""
    order = [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL]
    return max(parts, key=lambda part: (order.index(part.outcome), part.tension))
