"""How much sessions vary: what the baseline shows of it, and what the candidate's own sessions add.

The baseline's variance is known from many sessions and comparisons, the candidate's from a handful. So the candidate's
is drawn towards the baseline's as a comparison's is towards its metric's (`moderated`): it counts as alike with a
certain weight, and as its own sessions show with the weight of their degrees of freedom. It is never believed to be
smaller. Since neither is known for sure, both sides' degrees of freedom enter the test (Welch 1947; Satterthwaite
1946): two candidate sessions need more to prove a change than their baseline's variance alone would ask for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from phasegate.stats.autocorrelation import degrees_of_freedom, unbiased, variance_factor
from phasegate.stats.moderated import LEAST_COMPARISONS
from phasegate.stats.winsor import LIMIT_OF_FEW, PULLED_TO, median_of, winsorised

Logs = NDArray[np.float64]

DEVIATION_FLOOR = 1e-3
"""Least standard deviation of a session's log: no clock and no engine repeats itself to better than 0.1 %."""

ALIKE_DF = 8.0
"""Weight, in degrees of freedom, of the belief that candidate sessions vary as the baseline's do."""

MOST_OVER_BASELINE = 1.5
"""Degrees of freedom of a difference, at most, in those of the baseline's noise: with one or two, Satterthwaite's sum
is too large. Matters to two or three baseline sessions only."""

SHARED_AS = 2.0
"""Comparisons that all those of a metric count as where they show together how much sessions vary: they share them."""

UNREST_ALPHA = 0.001
"""p below which candidate sessions are held to vary more than the baseline's."""

SHARED_UNREST_ALPHA = 0.01
"""The same for all comparisons of a metric together: believed sooner, since being wrong only costs some power."""

ASSUMED_DEVIATION = 0.05
"""Standard deviation assumed where a baseline of one session leaves it unknown: a noisy shared host."""

ASSUMED_DF = 4.0
"""Degrees of freedom of that assumption: as good as five sessions would have shown."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What is known of how much sessions vary.

    Attributes:
        deviation: standard deviation of one baseline session's log (of one block's, when paired).
        df: its degrees of freedom.
        correlation: of neighbouring sessions.
        unrest: variance of candidate sessions in units of that of baseline sessions, at least 1.
        pooled: comparisons whose candidate sessions show it; 0 where they do not count (blocks hold both sides).
        restless: whether it is proven that candidate sessions vary more.
        assumed: whether no data stand behind the deviation.
        rounding: standard deviation that the steps of the values alone give; 0 where they come in none.
    """

    deviation: float
    df: float
    correlation: float
    unrest: float = 1.0
    pooled: float = 0.0
    restless: bool = False
    assumed: bool = False
    rounding: float = 0.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What the candidate sessions of all comparisons of a metric show together.

    Attributes:
        ratio: their variance in units of the baseline's.
        pooled: comparisons that count, at most `SHARED_AS`; 0 where no candidate has two sessions.
        restless: whether it is likely that they vary more than the baseline's.
    """

    ratio: float = 1.0
    pooled: float = 0.0
    restless: bool = False


NOTHING_SHOWN = Shown()


def own_variance(logs: Logs, correlation: float, rounding: float = 0.0) -> tuple[float, float]:
    """The variance of single sessions (or blocks) and its degrees of freedom; (0, 0) of fewer than two.

    ``rounding`` is the standard deviation that the steps of the values alone give: less is not to be seen in them.
    """
    k = logs.size
    if k < 2:
        return 0.0, 0.0
    least = max(DEVIATION_FLOOR, rounding)
    pulled, _ = winsorised(logs, least_scale=least)
    variance = unbiased(float(pulled.var(ddof=1)), k, correlation)
    return max(variance, least**2), degrees_of_freedom(k, correlation)


def shown_together(noises: Sequence[Noise], candidates: Sequence[Logs]) -> Shown:
    """How many times more candidate sessions vary than baseline sessions, over all comparisons of a metric.

    One comparison has too few candidate sessions to prove even a fourfold variance; a noisy host raises that of all.
    """
    found = [
        (*_unrest_ratio(noise, one), noise.df)
        for noise, one in zip(noises, candidates, strict=True)
        if one.size > 1 and not noise.assumed
    ]
    if not found:
        return NOTHING_SHOWN
    weight = math.fsum(df for _, df, _ in found)
    ratio = math.fsum(ratio * df for ratio, df, _ in found) / weight
    pooled = min(SHARED_AS, len(found))
    if len(found) < LEAST_COMPARISONS:
        return Shown(ratio, pooled)
    df = pooled * weight / len(found)
    likely = ratio > 1.0 and float(fdtrc(df, fmean(one for _, _, one in found), ratio)) < SHARED_UNREST_ALPHA
    return Shown(ratio, pooled, likely)


def with_unrest(noise: Noise, candidate: Logs, shown: Shown = NOTHING_SHOWN) -> Noise:
    """The noise, with what is known of the candidate's own variance.

    A candidate that varies more than its baseline is a finding of its own, but the mean of its sessions is then less
    sure than the baseline's variance says, and that must not read as slower. Where it is proven, by this comparison
    or by all of its metric, the variance that was seen counts in full.
    """
    if noise.assumed:
        return noise
    m = candidate.size
    alike, seen = _alike_df(noise), shown.pooled * degrees_of_freedom(m, noise.correlation)
    unrest = max(1.0, (alike + seen * shown.ratio) / (alike + seen))
    if shown.restless:
        unrest = max(unrest, shown.ratio)
    proven = False
    if m > 2:
        ratio, df = _unrest_ratio(noise, candidate)
        proven = float(fdtrc(df, noise.df, ratio)) < UNREST_ALPHA
        unrest = max(unrest, ratio) if proven else unrest
    return replace(noise, unrest=unrest, pooled=max(1.0, shown.pooled), restless=proven or shown.restless)


def _alike_df(noise: Noise) -> float:
    """Weight of the belief that the candidate varies as the baseline does; less where that is not known well itself."""
    return 1.0 / (1.0 / ALIKE_DF + 1.0 / noise.df)


def _unrest_ratio(noise: Noise, candidate: Logs) -> tuple[float, float]:
    """Variance of two or more candidate sessions in units of the baseline's, and its degrees of freedom."""
    pulled = _without_a_bad_one(candidate, noise.deviation)
    variance = unbiased(float(pulled.var(ddof=1)), candidate.size, noise.correlation)
    return variance / noise.deviation**2, degrees_of_freedom(candidate.size, noise.correlation)


def _without_a_bad_one(candidate: Logs, deviation: float) -> Logs:
    """Candidate sessions, far ones pulled in: by the baseline's deviation where it is a single one.

    A single far session is a bad one and says nothing of how much all of them vary; several far ones do.
    """
    middle = median_of(candidate)
    off = candidate - middle
    far = np.abs(off) > LIMIT_OF_FEW * deviation
    if candidate.size > 2 and np.count_nonzero(far) == 1:
        return np.where(far, middle + PULLED_TO * deviation * np.sign(off), candidate)
    return winsorised(candidate, deviation)[0]


def spread_factor(k: int, m: int, noise: Noise, leverage: float = 0.0) -> float:
    """Standard error of the difference of m candidate and k baseline sessions, in deviations of one.

    k = 0 is the paired case: m blocks that hold both sides, compared with zero.
    """
    now, before = _parts(k, m, noise, leverage)
    return math.sqrt(now + before)


def error_df(k: int, m: int, noise: Noise, leverage: float = 0.0, *, shown_by: int | None = None) -> float:
    """Degrees of freedom of that standard error, by Satterthwaite; limited where the baseline has very few.

    Args:
        shown_by: candidate sessions that show how much they vary, where other than m.
    """
    if not noise.pooled:
        return noise.df
    now, before = _parts(k, m, noise, leverage)
    shown = noise.pooled * degrees_of_freedom(m if shown_by is None else shown_by, noise.correlation)
    total = (now + before) ** 2 / (now**2 / (_alike_df(noise) + shown) + before**2 / noise.df)
    return min(total, MOST_OVER_BASELINE * noise.df)


def _parts(k: int, m: int, noise: Noise, leverage: float) -> tuple[float, float]:
    """Variance of the candidate's mean and of the baseline's, in units of one baseline session's."""
    r = noise.correlation
    return noise.unrest * variance_factor(m, r) / m, (variance_factor(k, r) / k if k else 0.0) + leverage
