"""Stored sessions against candidate sessions: N comparisons of one build, judged together.

Requests make a session's value precise; sessions carry the proof. The comparisons of one metric lend each other their
variance (`moderated`), all gated ones share the build's chance of a false alarm (`multiplicity`), and every row says
what it could have found (`power`): a comparison that would have missed a worsening beyond its tolerance is undecided,
never within.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.autocorrelation import LEAST_CORRELATION, shared_correlation
from phasegate.stats.common_shift import common_shift
from phasegate.stats.compare_levels import Seen, splits_of
from phasegate.stats.compare_noise import (
    ASSUMED_DEVIATION,
    ASSUMED_DF,
    DEVIATION_FLOOR,
    Noise,
    own_variance,
    shown_together,
)
from phasegate.stats.compare_row import Weighed, fails_from, in_groups, judged_rows, least_change, weigh_one
from phasegate.stats.compare_types import (
    ComparedRow,
    CompareSettings,
    Decision,
    StoredComparison,
    StoredResult,
    check_values,
)
from phasegate.stats.kinds import MOST_STEPS_OF_ONE_LEVEL, Levels, levelled, levels_of, within_kinds
from phasegate.stats.moderated import LEAST_COMPARISONS, NOTHING_KNOWN, Prior, fit_prior, moderate
from phasegate.stats.resolution import deviation_of_rounding, grid_step, rounding_error, rounding_of_difference
from phasegate.stats.sentinel import NO_RELATION, Adjusted, adjust, relations
from phasegate.stats.winsor import SCALE_FLOOR, winsorised

__all__ = [
    "CompareSettings",
    "ComparedRow",
    "Decision",
    "StoredComparison",
    "StoredResult",
    "compare_stored",
]

Logs = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A comparison's logs, positive for worse, without the sentinel's part; its levels and its resolution.

    Attributes:
        step: the resolution in the metric's unit; 0 for none.
        fineness: standard deviation of a log that the steps alone give.
    """

    comparison: StoredComparison
    adjusted: Adjusted
    levels: Levels | None
    step: float
    fineness: float

    @property
    def group(self) -> str:
        """The metric."""
        return self.comparison.group

    @property
    def material(self) -> float:
        """The least log ratio that counts."""
        return math.log1p(fails_from(self.comparison)) if self.comparison.baseline else 0.0

    @property
    def levelled(self) -> Logs:
        """The baseline's sessions with the distance of its levels taken out."""
        return levelled(self.adjusted.baseline, None if self.levels is None else self.levels.upper)

    @property
    def calm(self) -> Logs:
        """The same, far sessions pulled in."""
        return winsorised(self.levelled, least_scale=max(SCALE_FLOOR, self.fineness))[0]

    def rounding(self) -> tuple[float, float]:
        """What rounding may make up of a worsening and of an improvement, as logs."""
        one = self.comparison
        if not self.step or not one.baseline or not one.candidate:
            return 0.0, 0.0
        before = np.asarray(one.baseline, dtype=np.float64)
        parts = [before] if self.levels is None else self.levels.parts(before)
        off = max(rounding_error(part, self.step) for part in parts)
        rise, fall = rounding_of_difference(before, one.candidate, off)
        return (fall, rise) if one.higher_is_better else (rise, fall)


def compare_stored(comparisons: Sequence[StoredComparison], settings: CompareSettings | None = None) -> StoredResult:
    """Judge all comparisons of a build together.

    Args:
        comparisons: gated and advisory ones, in any order; a side without sessions gives an undecided row.
        settings: the numbers that decide; None for the defaults.

    Raises:
        ValueError: a value is not a positive, finite number, or two comparisons have one name.
    """
    settings = settings or CompareSettings()
    _check(comparisons)
    rows = judged_rows(in_groups(_prepare(comparisons), lambda members: _weigh_group(members, settings)), settings)
    gated = sum(one.gated for one in comparisons)
    return StoredResult(rows, settings.alpha, gated, common_shift(rows, [one.group for one in comparisons]))


def _check(comparisons: Sequence[StoredComparison]) -> None:
    names: set[str] = set()
    for one in comparisons:
        if one.name in names:
            raise ValueError(f"two comparisons are named {one.name!r}; give each its own name")
        names.add(one.name)
        if not (one.tolerance > 0.0 and math.isfinite(one.tolerance)):
            raise ValueError(f"{one.name}: the tolerance is {one.tolerance!r}; it is a positive fraction, 0.05 for 5 %")
        for word in ("baseline", "candidate", "baseline_sentinel", "candidate_sentinel"):
            check_values(one.name, word.replace("_", " "), getattr(one, word))


def _weigh_group(prepared: Sequence[_Prepared], settings: CompareSettings) -> list[Weighed]:
    """The evidence of all comparisons of one metric."""
    correlation = shared_correlation([one.calm for one in prepared])
    own = [_own_variance(one, correlation) for one in prepared]
    prior = _prior(prepared, own)
    noises = [
        _noise(variance, df, prior, correlation, one.fineness)
        for one, (variance, df) in zip(prepared, own, strict=True)
    ]
    candidates = [one.adjusted.candidate for one in prepared]
    splits = splits_of(candidates, noises)
    shown = shown_together(noises, [within_kinds(one, split) for one, split in zip(candidates, splits, strict=True)])
    return [
        weigh_one(
            one.comparison,
            Seen(
                one.adjusted.baseline, one.adjusted.candidate, noise, one.levels, split, shown,
                one.rounding(), one.adjusted.leverage, settings.confidence, one.material,
            ),
            one.step,
        )
        for one, noise, split in zip(prepared, noises, splits, strict=True)
    ]  # fmt: skip


def _prior(prepared: Sequence[_Prepared], own: Sequence[tuple[float, float]]) -> Prior:
    """What the comparisons of a metric say of each other's variance.

    Those at two levels only where too few are at one: what is left of their variance is the least of many splits.
    """
    known = [(one.levels is None, *parts) for one, parts in zip(prepared, own, strict=True) if parts[1] > 0.0]
    plain = [one for one in known if one[0]]
    chosen = plain if len(plain) >= LEAST_COMPARISONS else known
    return fit_prior([variance for _, variance, _ in chosen], [df for _, _, df in chosen])


def _prepare(comparisons: Sequence[StoredComparison]) -> list[_Prepared]:
    """All comparisons of a build: the host's part taken out metric by metric, then the kinds of sessions found."""
    adjusted = in_groups(comparisons, _adjusted)
    steps = [grid_step(one.baseline, one.candidate) if one.step is None else one.step for one in comparisons]
    middles = [float(np.median(one.baseline)) if one.baseline else math.inf for one in comparisons]
    finenesses = [deviation_of_rounding(step, middle) for step, middle in zip(steps, middles, strict=True)]
    levels = levels_of(
        [one.baseline for one in adjusted],
        [
            max(least_change(one), MOST_STEPS_OF_ONE_LEVEL * step / middle)
            for one, step, middle in zip(comparisons, steps, middles, strict=True)
        ],
        [max(DEVIATION_FLOOR, fineness) for fineness in finenesses],
    )
    return [_Prepared(*parts) for parts in zip(comparisons, adjusted, levels, steps, finenesses, strict=True)]


def _adjusted(members: Sequence[StoredComparison]) -> list[Adjusted]:
    """The logs of all comparisons of one metric, the host's part taken out."""
    logs = [_side_logs(one) for one in members]
    pairs = [
        (side["baseline"], side["baseline_sentinel"])
        if 0 < side["baseline"].size == side["baseline_sentinel"].size
        and 0 < side["candidate"].size == side["candidate_sentinel"].size
        else None
        for side in logs
    ]
    return [
        Adjusted(side["baseline"], side["candidate"]) if relation == NO_RELATION else adjust(**side, relation=relation)
        for side, relation in zip(logs, relations(pairs), strict=True)
    ]


def _side_logs(one: StoredComparison) -> Mapping[str, Logs]:
    # The sentinel is a latency of its own; the metric's sign turns it where larger is better.
    sign = -1.0 if one.higher_is_better else 1.0
    return {
        "baseline": sign * np.log(np.asarray(one.baseline, dtype=np.float64)),
        "candidate": sign * np.log(np.asarray(one.candidate, dtype=np.float64)),
        "baseline_sentinel": np.log(np.asarray(one.baseline_sentinel, dtype=np.float64)),
        "candidate_sentinel": np.log(np.asarray(one.candidate_sentinel, dtype=np.float64)),
    }


def _own_variance(one: _Prepared, correlation: float) -> tuple[float, float]:
    variance, df = own_variance(one.levelled, correlation, one.fineness)
    # The coefficient was fitted to the same sessions, and so were the levels.
    used = one.adjusted.relation.uncertainty + (one.levels is not None)
    left = max(1.0, df - used)
    return (variance * df / left, left) if df > 1.0 else (variance, df)


def _noise(variance: float, df: float, prior: Prior, correlation: float, fineness: float) -> Noise:
    if df == 0.0 and prior == NOTHING_KNOWN:
        deviation = max(ASSUMED_DEVIATION, fineness)
        return Noise(deviation, ASSUMED_DF, LEAST_CORRELATION, assumed=True, rounding=fineness)
    steadied, total = moderate(variance, df, prior)
    deviation = max(math.sqrt(steadied), DEVIATION_FLOOR, fineness)
    return Noise(deviation, total, correlation, rounding=fineness)
