"""The levels of a comparison as values of the metric, and its sentences about them and about coarse values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.compare_evidence import Evidence
from phasegate.stats.compare_types import StoredComparison, TwoLevels
from phasegate.stats.compare_words import percent, signed
from phasegate.stats.kinds import LEAST_OF_A_KIND, NEW_LEVEL

HOLD_FIXED = "find out what makes sessions differ (the runner, its cores, memory or clocks) and hold it fixed"


def levels_of_baseline(one: StoredComparison, evidence: Evidence) -> TwoLevels | None:
    """The levels that the baseline's sessions stand at; None for one."""
    if evidence.levels is None:
        return None
    newest = evidence.levels.newest
    upper = evidence.levels.upper
    return _two(one.baseline, upper != one.higher_is_better, newest, one.candidate)


def levels_of_candidate(one: StoredComparison, evidence: Evidence) -> TwoLevels | None:
    """The same of the candidate's sessions; a single session that is worse is a bad one, and no kind."""
    if evidence.split is None or np.count_nonzero(evidence.split) < LEAST_OF_A_KIND:
        return None
    return _two(one.candidate, evidence.split != one.higher_is_better, 0, ())


def _two(values: Sequence[float], high: NDArray[np.bool_], newest: int, candidate: Sequence[float]) -> TwoLevels:
    logs = np.log(np.asarray(values, dtype=np.float64))
    ends = math.exp(float(logs[~high].mean())), math.exp(float(logs[high].mean()))
    now = math.exp(float(np.mean(np.log(np.asarray(candidate, dtype=np.float64))))) if len(candidate) else None
    return TwoLevels(
        *ends, int(np.count_nonzero(~high)), int(np.count_nonzero(high)), newest, bool(high[-1]) if newest else False,
        None if now is None else now / ends[0], None if now is None else now / ends[1],
    )  # fmt: skip


def between_levels(evidence: Evidence, levels: TwoLevels | None) -> str:
    """Why a candidate that is worse than some of the baseline's sessions is not proven to be worse."""
    if levels is None:
        if evidence.split is None:
            return "some baseline sessions that stand off the others are like it, so sessions may be of two kinds"
        return "its sessions are of two kinds, and the better ones stand where the baseline does"
    if levels.newest:
        return newest_level(levels)
    gap = percent(levels.apart)
    return f"the baseline has two kinds of sessions, {gap} apart, and it is not proven to be worse than the worse kind"


def little_against_the_worse(evidence: Evidence, levels: TwoLevels | None) -> str:
    """Why a candidate that is proven to be worse, and by much on the whole, is not known to have changed by as much."""
    by = signed(math.exp(evidence.d_worse))
    if levels is None:
        return f"its sessions are of two kinds, and the better ones are worse than the baseline by {by} only"
    if levels.newest:
        return newest_level(levels)
    gap = percent(levels.apart)
    return f"the baseline has two kinds of sessions, {gap} apart, and against the worse kind it is {by} only"


def of_two_kinds(baseline: TwoLevels | None, candidate: TwoLevels | None) -> str:
    """The start of a sentence that says so where a side has two levels, else nothing."""
    if baseline is not None and baseline.newest:
        return f"{newest_level(baseline)}; "
    sides = [f"the {word}'s" for word, one in (("baseline", baseline), ("candidate", candidate)) if one is not None]
    apart = max((one.apart for one in (baseline, candidate) if one is not None), default=0.0)
    return f"{' and '.join(sides)} sessions are of two kinds, {percent(apart)} apart; " if sides else ""


def newest_level(levels: TwoLevels) -> str:
    """How the level changed with the newest baseline sessions, and where the candidate stands to either level."""
    count, older = levels.newest, levels.low_count + levels.high_count - levels.newest
    new, old = (levels.high, levels.low) if levels.newest_high else (levels.low, levels.high)
    ends = levels.against_low, levels.against_high
    to_new, to_old = ends[::-1] if levels.newest_high else ends
    newest = "the newest baseline session stands" if count == 1 else f"the newest {count} baseline sessions stand"
    said = f"{newest} at another level, {signed(new / old)} to the {older} before"
    if to_new is None or to_old is None:
        return said
    return f"{said}; against the newest it is {signed(to_new)}, against those before {signed(to_old)}"


def remedy_of_levels(evidence: Evidence) -> str:
    """What would decide such a comparison."""
    if evidence.levels is None or not evidence.levels.newest:
        return HOLD_FIXED
    more = NEW_LEVEL - evidence.levels.newest
    return (
        f"{more} more baseline session{'s' if more > 1 else ''} of the accepted server would show which level holds "
        "(a new one is believed from three on)"
    )


def too_coarse(evidence: Evidence, mde: float, tolerance: str) -> str:
    """Why rounded values leave a comparison undecided."""
    return (
        f"its values come in steps, so that rounding alone may make up {signed(math.exp(evidence.rounding))}; only a "
        f"worsening of {percent(mde)} would have been found, above {tolerance}"
    )
