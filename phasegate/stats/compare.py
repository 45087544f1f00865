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
from phasegate.stats.compare_noise import (
    ASSUMED_DEVIATION,
    ASSUMED_DF,
    DEVIATION_FLOOR,
    Noise,
    own_variance,
    shown_together,
)
from phasegate.stats.compare_row import Weighed, judged_rows, weigh_one, weighed_in_groups
from phasegate.stats.compare_types import (
    ComparedRow,
    CompareSettings,
    Decision,
    StoredComparison,
    StoredResult,
    check_values,
)
from phasegate.stats.moderated import NOTHING_KNOWN, Prior, fit_prior, moderate
from phasegate.stats.sentinel import NO_RELATION, Adjusted, adjust, relations
from phasegate.stats.together import moved_together
from phasegate.stats.winsor import winsorised

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
    """A comparison's logs, positive for worse, with and without the sentinel's part."""

    comparison: StoredComparison
    adjusted: Adjusted


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
    rows = judged_rows(weighed_in_groups(comparisons, lambda members: _weigh_group(members, settings)), settings)
    gated = sum(one.gated for one in comparisons)
    return StoredResult(rows, settings.alpha, gated, moved_together(rows, [one.group for one in comparisons]))


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


def _weigh_group(members: Sequence[StoredComparison], settings: CompareSettings) -> list[Weighed]:
    """The evidence of all comparisons of one metric."""
    prepared = _prepare(members)
    correlation = shared_correlation([winsorised(one.adjusted.baseline)[0] for one in prepared])
    own = [_own_variance(one.adjusted, correlation) for one in prepared]
    known = [(variance, df) for variance, df in own if df > 0.0]
    prior = fit_prior([variance for variance, _ in known], [df for _, df in known])
    noises = [_noise(variance, df, prior, correlation) for variance, df in own]
    shown = shown_together(noises, [one.adjusted.candidate for one in prepared])
    return [
        weigh_one(one.comparison, one.adjusted, noise, settings, shown)
        for one, noise in zip(prepared, noises, strict=True)
    ]


def _prepare(members: Sequence[StoredComparison]) -> list[_Prepared]:
    logs = [_side_logs(one) for one in members]
    pairs = [
        (side["baseline"], side["baseline_sentinel"])
        if 0 < side["baseline"].size == side["baseline_sentinel"].size
        and 0 < side["candidate"].size == side["candidate_sentinel"].size
        else None
        for side in logs
    ]
    prepared = []
    for one, side, relation in zip(members, logs, relations(pairs), strict=True):
        adjusted = Adjusted(side["baseline"], side["candidate"])
        if relation != NO_RELATION:
            adjusted = adjust(**side, relation=relation)
        prepared.append(_Prepared(one, adjusted))
    return prepared


def _side_logs(one: StoredComparison) -> Mapping[str, Logs]:
    # The sentinel is a latency of its own; the metric's sign turns it where larger is better.
    sign = -1.0 if one.higher_is_better else 1.0
    return {
        "baseline": sign * np.log(np.asarray(one.baseline, dtype=np.float64)),
        "candidate": sign * np.log(np.asarray(one.candidate, dtype=np.float64)),
        "baseline_sentinel": np.log(np.asarray(one.baseline_sentinel, dtype=np.float64)),
        "candidate_sentinel": np.log(np.asarray(one.candidate_sentinel, dtype=np.float64)),
    }


def _own_variance(adjusted: Adjusted, correlation: float) -> tuple[float, float]:
    variance, df = own_variance(adjusted.baseline, correlation)
    # The coefficient was fitted to the same sessions.
    left = max(1.0, df - adjusted.relation.uncertainty)
    return (variance * df / left, left) if df > 1.0 else (variance, df)


def _noise(variance: float, df: float, prior: Prior, correlation: float) -> Noise:
    if df == 0.0 and prior == NOTHING_KNOWN:
        return Noise(ASSUMED_DEVIATION, ASSUMED_DF, LEAST_CORRELATION, assumed=True)
    steadied, total = moderate(variance, df, prior)
    return Noise(max(math.sqrt(steadied), DEVIATION_FLOOR), total, correlation)
