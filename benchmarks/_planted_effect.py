"""What a planted change really did, and whether the gate said so.

The true effect is measured apart from the gate: the change's sessions against all sessions of unchanged settings in
the whole run, before and after, while the gate sees only the baseline. Whether there was something to catch is decided
by these numbers and never by what the change was meant to do.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from phasegate.core.session import Session
from phasegate.gate.levels import Key, Side
from phasegate.gate.verdict import Finding, GateResult, Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Effect:
    """Ratio of the geometric means of session medians, changed / unchanged, with a 95 % interval.

    ``low`` and ``high`` are 0 and infinity where a side has fewer than two sessions.
    """

    ratio: float
    low: float
    high: float
    sessions: int


def effect_of(unchanged: Sequence[float], changed: Sequence[float]) -> Effect:
    """The effect of a change on session medians, by Welch's interval (1947) on logarithms.

    Raises:
        ValueError: a side is empty.
    """
    if not unchanged or not changed:
        raise ValueError("an effect needs a session on each side")
    sides = [np.log(np.asarray(values, dtype=np.float64)) for values in (changed, unchanged)]
    middle = float(sides[0].mean() - sides[1].mean())
    if min(side.size for side in sides) < 2:
        return Effect(math.exp(middle), 0.0, math.inf, len(changed))
    parts = [float(side.var(ddof=1)) / side.size for side in sides]
    variance = sum(parts)
    if variance == 0.0:
        return Effect(math.exp(middle), math.exp(middle), math.exp(middle), len(changed))
    df = variance**2 / sum(part**2 / (side.size - 1) for part, side in zip(parts, sides, strict=True))
    half = float(special.stdtrit(df, 0.5 + CONFIDENCE / 2)) * math.sqrt(variance)
    return Effect(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(changed))


@dataclass(frozen=True, slots=True)
class Truth:
    """One comparison: what the gate said of it, and what was true."""

    finding: Finding
    effect: Effect

    @property
    def tolerance(self) -> float:
        """The fraction that applied; infinite where the gate needed none."""
        return math.inf if self.finding.tolerance is None else self.finding.tolerance

    @property
    def above(self) -> bool:
        """Whether the whole interval lies above the tolerance: this has to be caught."""
        return self.effect.low - 1 > self.tolerance

    @property
    def at_limit(self) -> bool:
        """Whether the interval does not tell on which side of the tolerance the effect lies."""
        return not self.above and self.effect.high - 1 > self.tolerance

    @property
    def material(self) -> bool:
        """Whether the effect is at least half the tolerance, from where on the gate may name it."""
        return self.effect.ratio - 1 >= self.tolerance / 2

    @property
    def named(self) -> bool:
        """Whether the gate calls it a regression."""
        return self.finding.verdict is Verdict.REGRESSION


def truths(result: GateResult, unchanged: Sequence[Session], changed: Sequence[Session]) -> Iterator[Truth]:
    """Every comparison of a verdict with its true effect; objectives and comparisons never made are left out."""
    old, new = Side.of(fit(unchanged)), Side.of(fit(changed))
    for finding in result.findings:
        key: Key = finding.workload, finding.metric
        before, after = list(old.levels(key).values()), list(new.levels(key).values())
        if before and after:
            yield Truth(finding, effect_of(before, after))


def fit(sessions: Sequence[Session]) -> list[Session]:
    """The sessions that nobody disturbed."""
    return [one for one in sessions if one.disturbed is None]


class Outcome(str, enum.Enum):
    """How the gate did on one change, in the words of the report."""

    CAUGHT = "caught"
    EARLY = "caught below the tolerance"
    QUIET = "nothing to catch, none named"
    AT_LIMIT = "at the limit, not named"
    MISSED = "MISSED"
    WRONG_PHASE = "WRONG PHASE"
    FALSE_ALARM = "FALSE ALARM"
    NOT_JUDGED = "NOT JUDGED"

    @property
    def bad(self) -> bool:
        """Whether the gate failed."""
        return self in (Outcome.MISSED, Outcome.WRONG_PHASE, Outcome.FALSE_ALARM, Outcome.NOT_JUDGED)


JUDGED = (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.IMPROVED)


def outcome_of(verdict: Verdict, found: Sequence[Truth]) -> Outcome:
    """How the gate did, from its gated comparisons.

    A phase is due where a gated comparison of it is above its tolerance for certain; a phase is wrongly named where no
    comparison of it, gated or not, has even half the tolerance.
    """
    gated = [one for one in found if one.finding.gated]
    if verdict not in JUDGED or not gated:
        return Outcome.NOT_JUDGED
    due = {one.finding.phase for one in gated if one.above}
    named = named_phases(found)
    there = {one.finding.phase for one in found if one.material}
    if named - there:
        return Outcome.WRONG_PHASE if due else Outcome.FALSE_ALARM
    if due - named:
        return Outcome.MISSED
    if due:
        return Outcome.CAUGHT
    if named:
        return Outcome.EARLY
    return Outcome.AT_LIMIT if any(one.at_limit for one in gated) else Outcome.QUIET


def named_phases(found: Sequence[Truth]) -> set[str]:
    """Phases that the gate names: those of gated comparisons that regressed."""
    return {one.finding.phase for one in found if one.finding.gated and one.named}
