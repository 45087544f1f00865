"""The search for the highest load that still keeps every objective: doubling, then bisection.

The search is told what was measured and says what to measure next; it measures nothing itself. A level counts as kept
or broken only where the exact interval proves it, so the answer is an interval: kept up to the one, broken from the
other, with the unproven levels between them. Where the break was found but not proven, higher levels are measured until
one proves it, since a heavier load breaks the objective more plainly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.gate.break_cause import Broken, Cause, cause_of
from phasegate.gate.slo import Objective
from phasegate.gate.slo_share import Kept, judge_level
from phasegate.gate.verdict import Verdict
from phasegate.stats.level_run import LevelRun

RATE_STEP = 1.25
"""A break between two rates is known well enough when they are this factor apart: finer than rates repeat."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How far one objective holds.

    Attributes:
        objective: the promise.
        kept: highest level proven to keep it, below every level proven to break it; None where none is proven.
        broken: lowest level proven to break it; None where none is proven.
        unproven: levels measured between the two that prove neither.
        cause: why it broke; None where it did not.
        at_most: highest level that the search was allowed to measure.
        by_rate: whether levels are requests a second.
    """

    objective: Objective
    kept: float | None
    broken: float | None
    unproven: tuple[float, ...]
    cause: Broken | None
    at_most: float
    by_rate: bool

    @property
    def text(self) -> str:
        """The limit in one line."""
        unit = " requests/s" if self.by_rate else " at a time"
        if self.broken is None:
            reached = "nothing proven" if self.kept is None else f"kept up to {self.kept:.3g}{unit}"
            text = f"{self.objective.text}: {reached}, no break up to {self.at_most:.3g}"
        else:
            reached = "no level proven to keep it" if self.kept is None else f"kept up to {self.kept:.3g}{unit}"
            text = f"{self.objective.text}: {reached}, broken from {self.broken:.3g}{unit}"
        if self.unproven:
            levels = ", ".join(f"{level:.3g}" for level in self.unproven)
            text += f"; unproven at {levels}: send more (--perf-load-requests)"
        return text


def limits(
    objectives: Sequence[Objective], runs: Sequence[LevelRun], *, at_most: float, single: LevelRun | None = None
) -> list[Limit]:
    """How far each objective holds, by what was measured; the one that breaks first stands first.

    ``single`` is the same workload from one user, which causes are told against; None takes the lowest of ``runs``.
    """
    found = [_limit(objective, runs, at_most, single) for objective in objectives]
    return sorted(found, key=lambda one: math.inf if one.broken is None else one.broken)


def judge_limits(found: Sequence[Limit]) -> tuple[Verdict, str]:
    """The word for a search as a whole: PASS where every objective is proven kept at some level.

    SLO_BREACH where one is broken and kept nowhere, INCONCLUSIVE where one is proven neither way.
    """
    nowhere = [one for one in found if one.kept is None]
    if not nowhere:
        return Verdict.PASS, "; ".join(one.text for one in found)
    first = next((one for one in nowhere if one.broken is not None), nowhere[0])
    if first.broken is None:
        return Verdict.INCONCLUSIVE, first.text
    cause = "" if first.cause is None else f"; cause: {first.cause.cause.value}: {first.cause.reason}"
    return Verdict.SLO_BREACH, first.text + cause


def _limit(objective: Objective, runs: Sequence[LevelRun], at_most: float, single: LevelRun | None) -> Limit:
    ordered = sorted(runs, key=lambda run: run.level)
    judged = [judge_level(objective, run) for run in ordered]
    broken = min((one.level for one in judged if one.verdict is Verdict.SLO_BREACH), default=None)
    below = [one for one in judged if broken is None or one.level < broken]
    kept = max((one.level for one in below if one.verdict is Verdict.PASS), default=None)
    unproven = tuple(one.level for one in below if kept is None or one.level > kept)
    culprit = next((run for run in ordered if run.level == broken), None)
    cause = cause_of(objective, single or ordered[0], culprit) if culprit is not None else _client_limit(ordered)
    return Limit(objective, kept, broken, unproven, cause, at_most, by_rate=any(run.by_rate for run in runs))


def _client_limit(ordered: Sequence[LevelRun]) -> Broken | None:
    """Where no break is proven: why a level could not be judged, which is the client's doing and not the server's."""
    invalid = next((run for run in ordered if run.missed is not None), None)
    return None if invalid is None else Broken(Cause.CLIENT, f"{invalid.name} cannot be judged: {invalid.missed}")


def next_level(objectives: Sequence[Objective], runs: Sequence[LevelRun], *, at_most: int) -> int | None:
    """The concurrency to measure next, or None where the search is over.

    1 first, then twice the highest while all is kept, then the middle between kept and broken of the objective that
    breaks first, then twice the highest again while no level proves the break. ``at_most`` is never exceeded.
    """
    low, high = _bracket(objectives, runs)
    if low is None and high is None:
        return 1
    if high is None:
        assert low is not None
        return min(int(low) * 2, at_most) if low < at_most else None
    middle = (int(low or 0) + int(high)) // 2
    if (low or 0) < middle < high and middle >= 1:
        return middle
    above = _to_prove_the_break(objectives, runs, at_most)
    return None if above is None else int(above)


def next_rate(
    objectives: Sequence[Objective], runs: Sequence[LevelRun], *, first: float, at_most: float
) -> float | None:
    """The rate of arrivals to measure next, or None where the search is over: the same by factors.

    ``first`` is where it begins, such as half the rate at which one user got answers.
    """
    low, high = _bracket(objectives, runs)
    if low is None and high is None:
        return min(first, at_most)
    if high is None:
        assert low is not None
        return min(low * 2, at_most) if low < at_most else None
    if low is None and high > first / 8:
        return high / 2  # broken where it began: look below, but not for ever
    if low is not None and high / low > RATE_STEP:
        return math.sqrt(low * high)
    return _to_prove_the_break(objectives, runs, at_most)


def _to_prove_the_break(objectives: Sequence[Objective], runs: Sequence[LevelRun], at_most: float) -> float | None:
    """A level above all measured ones, where no level proves a break that one of them shows; None where one does.

    None also where the client could not offer the highest level: it cannot offer a higher one either.
    """
    proven = any(judge_level(one, run).verdict is Verdict.SLO_BREACH for one in objectives for run in runs)
    highest = max(runs, key=lambda run: run.level)
    if proven or highest.missed is not None or highest.level >= at_most:
        return None
    return min(2 * highest.level, at_most)


def _bracket(objectives: Sequence[Objective], runs: Sequence[LevelRun]) -> tuple[float | None, float | None]:
    """Highest level that seems to keep every objective, and the lowest above it that seems not to.

    By the share itself and not by its interval: an unproven level must lead the search somewhere as well.
    """
    seems = {run.level: all(_seems_kept(judge_level(one, run)) for one in objectives) for run in runs}
    high = min((level for level, kept in seems.items() if not kept), default=None)
    low = max((level for level, kept in seems.items() if kept and (high is None or level < high)), default=None)
    return low, high


def _seems_kept(kept: Kept) -> bool:
    return kept.missed is not None and kept.missed.share <= 1 - kept.objective.share
