"""What goes into a comparison of sessions and what comes out: plain frozen values."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass


class Decision(str, enum.Enum):
    """How a comparison ends. WITHIN is said only where a worsening beyond the tolerance would have been found."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    WITHIN = "within"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """One metric of one workload, in stored baseline sessions and in candidate sessions.

    Attributes:
        name: for sentences and to find the row again.
        group: comparisons of one group lend each other their variance; the metric's name.
        baseline, candidate: one positive value per session (such as its median), in time order, in the metric's unit.
        tolerance: smallest worsening that must be found, as a fraction.
        floor: worsening in the metric's unit below which nothing is a regression; 0 for none.
        higher_is_better: whether larger values are better.
        gated: whether it shares the build's chance of a false alarm; the others only inform.
        baseline_sentinel, candidate_sentinel: the frozen reference's values in the same sessions, positive; empty
            where there is none. Of another number than the sessions, they only show whether the host changed.
        fail_from: from which size, a fraction, a proven worsening is a regression; None for half the tolerance.
        weight: share of the build's chance of a false alarm in those of the other gated comparisons.
        step: the resolution, in the metric's unit: all measured values are multiples of it. 0 where they come in no
            steps that matter; None to find it in the sessions' values.
    """

    name: str
    group: str
    baseline: Sequence[float]
    candidate: Sequence[float]
    tolerance: float
    floor: float = 0.0
    higher_is_better: bool = False
    gated: bool = True
    baseline_sentinel: Sequence[float] = ()
    candidate_sentinel: Sequence[float] = ()
    fail_from: float | None = None
    weight: float = 1.0
    step: float | None = None


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """The numbers that decide, for all comparisons of a build.

    Attributes:
        alpha: chance of any false alarm among the gated comparisons of a build.
        power: chance with which an effect of the detectable size is found.
        confidence: of the two-sided interval of a ratio.
        least_candidate: candidate sessions below which nothing is decided: one alone may be a bad one.
        planned_candidate: candidate sessions of a comparison that does not stop early, if the sequence was fixed
            beforehand (see `sequential`); None where the sessions at hand are all there will be.
    """

    alpha: float = 0.01
    power: float = 0.99
    confidence: float = 0.95
    least_candidate: int = 2
    planned_candidate: int | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "power", "confidence"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a chance between 0 and 1")


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """Two levels that the sessions of one side stand at.

    Attributes:
        low, high: geometric means of the sessions at each, in the metric's unit.
        low_count, high_count: sessions at each.
        newest: how many of the newest sessions make up one level by themselves, so that it is a change and no two
            kinds; 0 where the kinds mix.
        newest_high: whether those stand at the higher level.
        against_low, against_high: candidate / level; None for levels of the candidate itself.
    """

    low: float
    high: float
    low_count: int
    high_count: int
    newest: int = 0
    newest_high: bool = False
    against_low: float | None = None
    against_high: float | None = None

    @property
    def apart(self) -> float:
        """How much higher the higher level is, as a fraction."""
        return self.high / self.low - 1.0


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One comparison, judged.

    Attributes:
        name: of the comparison.
        decision: the word.
        d: log ratio, positive for worse; None where a side has no session.
        ratio, low, high: candidate / baseline in the metric's own direction with its interval; None with ``d``, the
            interval also where nothing is known of the variance.
        p: one-sided p-value of "worse" before any correction; None where nothing can be tested.
        p_improved: the same of "better".
        p_allowed: the largest p with which "worse" counts as proven: the limit that the correction for the whole build
            came to for this comparison; None with ``p``.
        fails_from: from which worsening, a fraction, it regresses where it is proven, the absolute floor included;
            None where a side has no session.
        mde: smallest worsening that would have been found, as a fraction; inf where none would, None where nothing
            can be tested.
        df: degrees of freedom; None with ``mde``.
        deviation: standard deviation of one session's log that was reckoned with; None with ``mde``.
        baseline_count, candidate_count: sessions.
        sessions_needed: how many more candidate sessions would decide; None where decided, or where no number would.
        baseline_needed: how many more baseline sessions would decide, where candidate sessions alone would not.
        reason: one sentence with the numbers that decided.
        warnings: remarks worded as remedies.
        remedy: what would decide an undecided row, in the clause that its reason has of it; empty where decided.
        baseline_levels, candidate_levels: the two levels of a side's sessions; None where they are of one.
        step: the resolution of the values in the metric's unit, where rounding may hide a change that would count;
            else 0.
    """

    name: str
    decision: Decision
    d: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    p_improved: float | None
    mde: float | None
    df: float | None
    deviation: float | None
    baseline_count: int
    candidate_count: int
    sessions_needed: int | None
    baseline_needed: int | None
    reason: str
    warnings: tuple[str, ...] = ()
    remedy: str = ""
    p_allowed: float | None = None
    fails_from: float | None = None
    baseline_levels: TwoLevels | None = None
    candidate_levels: TwoLevels | None = None
    step: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredResult:
    """All comparisons of a build.

    Attributes:
        rows: in the order they were given.
        alpha: the build's chance of a false alarm that was kept.
        gated: comparisons that share it.
        common_shift: one sentence where everything moved alike, which points at the host or the client; else None.
    """

    rows: tuple[ComparedRow, ...]
    alpha: float
    gated: int
    common_shift: str | None = None

    def row(self, name: str) -> ComparedRow:
        """The row of a comparison.

        Raises:
            KeyError: no comparison has this name.
        """
        for one in self.rows:
            if one.name == name:
                return one
        raise KeyError(f"no comparison is named {name!r}")


def check_values(name: str, word: str, values: Sequence[float]) -> None:
    """Demand positive, finite values.

    Raises:
        ValueError: one is not; names it.
    """
    for index, value in enumerate(values):
        if not (value > 0.0 and math.isfinite(value)):
            raise ValueError(
                f"{name}: value {index + 1} of the {word} is {value!r}; a comparison needs positive, finite numbers, "
                "leave failed measurements out"
            )
