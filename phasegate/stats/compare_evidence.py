"""The numbers of one comparison: a moderated t-test on session logs that no single session can decide.

d  = mean(candidate) - mean(baseline)           logs, far values pulled in, positive for worse
SE = s sqrt(g(m,r)/m + g(k,r)/k)                s moderated, g for neighbouring sessions that resemble each other
p  = max(p of all, p without the worst candidate session / 5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtri

from phasegate.stats.autocorrelation import degrees_of_freedom, unbiased, variance_factor
from phasegate.stats.moderated import LEAST_COMPARISONS
from phasegate.stats.power import critical_t, detectable_shift, upper_tail
from phasegate.stats.winsor import winsorised

Logs = NDArray[np.float64]

LEFT_OUT_GAIN = 5.0
"""How much weaker the evidence without the worst session may be: it rests on fewer sessions, the best of them."""

DEVIATION_FLOOR = 1e-3
"""Least standard deviation of a session's log: no clock and no engine repeats itself to better than 0.1 %."""

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
        deviation: standard deviation of one session's log.
        df: its degrees of freedom.
        correlation: of neighbouring sessions.
        unrest: variance of candidate sessions in units of that of baseline sessions; 1 unless proven larger.
        assumed: whether no data stand behind it.
    """

    deviation: float
    df: float
    correlation: float
    unrest: float = 1.0
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a comparison's sessions say. Logs, positive for worse.

    Attributes:
        d, error: difference and its standard error.
        low, high: interval of ``d``.
        p_worse, p_better: one-sided.
        d_all, p_worse_all: difference and p of "worse", far sessions neither pulled in nor left out.
        far: candidate sessions that were pulled in.
        least, most: difference of the best and of the worst candidate session, as measured.
        disagree: whether so few candidate sessions contradict each other that none can be called the bad one.
    """

    d: float
    error: float
    low: float
    high: float
    p_worse: float
    p_better: float
    d_all: float
    p_worse_all: float
    far: int
    least: float
    most: float
    disagree: bool


def own_variance(logs: Logs, correlation: float) -> tuple[float, float]:
    """The variance of single sessions (or blocks) and its degrees of freedom; (0, 0) of fewer than two."""
    k = logs.size
    if k < 2:
        return 0.0, 0.0
    pulled, _ = winsorised(logs)
    variance = unbiased(float(pulled.var(ddof=1)), k, correlation)
    return max(variance, DEVIATION_FLOOR**2), degrees_of_freedom(k, correlation)


def with_unrest(noise: Noise, candidate: Logs, shared: float = 1.0) -> Noise:
    """The noise, with the candidate's own variance where that is proven larger than the baseline's.

    A candidate that varies more than its baseline is a finding of its own, but the mean of its sessions is then less
    sure than the baseline's variance says, and that must not read as slower. ``shared`` is the least that all
    comparisons of the metric show together.
    """
    if candidate.size < 2 or noise.assumed:
        return noise
    ratio, df = _unrest_ratio(noise, candidate)
    proven = candidate.size > 2 and float(fdtrc(df, noise.df, ratio)) < UNREST_ALPHA
    return replace(noise, unrest=max(shared, ratio) if proven else shared)


def shared_unrest(noises: Sequence[Noise], candidates: Sequence[Logs]) -> float:
    """How many times more candidate sessions vary than baseline sessions, over all comparisons of a metric; 1 unless
    that is likely.

    One comparison has too few candidate sessions to prove even a fourfold variance; a noisy host raises that of all.
    """
    found = [
        (*_unrest_ratio(noise, one), noise.df)
        for noise, one in zip(noises, candidates, strict=True)
        if one.size > 1 and not noise.assumed
    ]
    if len(found) < LEAST_COMPARISONS:
        return 1.0
    weight = math.fsum(df for _, df, _ in found)
    ratio = math.fsum(ratio * df for ratio, df, _ in found) / weight
    # All comparisons share their sessions: however many there are, they count as two.
    df = 2.0 * weight / len(found)
    likely = float(fdtrc(df, fmean(one for _, _, one in found), ratio)) < SHARED_UNREST_ALPHA
    return max(1.0, ratio) if likely else 1.0


def _unrest_ratio(noise: Noise, candidate: Logs) -> tuple[float, float]:
    """Variance of two or more candidate sessions in units of the baseline's, and its degrees of freedom."""
    pulled, _ = winsorised(candidate, noise.deviation)
    variance = unbiased(float(pulled.var(ddof=1)), candidate.size, noise.correlation)
    return variance / noise.deviation**2, degrees_of_freedom(candidate.size, noise.correlation)


def spread_factor(k: int, m: int, noise: Noise, leverage: float = 0.0) -> float:
    """Standard error of the difference of m candidate and k baseline sessions, in deviations of one.

    k = 0 is the paired case: m blocks that hold both sides, compared with zero.
    """
    r = noise.correlation
    before = variance_factor(k, r) / k if k else 0.0
    return math.sqrt(noise.unrest * variance_factor(m, r) / m + before + leverage)


def weigh(baseline: Logs, candidate: Logs, noise: Noise, *, leverage: float, confidence: float) -> Evidence:
    """The evidence of a comparison.

    Args:
        baseline: logs, one per session; empty in the paired case, where ``candidate`` holds log ratios per block.
        candidate: logs, at least one.
    """
    k, m = baseline.size, candidate.size
    before = float(winsorised(baseline)[0].mean()) if k else 0.0
    pulled, far = winsorised(candidate, noise.deviation)
    d = float(pulled.mean()) - before
    error = noise.deviation * spread_factor(k, m, noise, leverage)
    half = critical_t((1.0 - confidence) / 2.0, noise.df) * error
    raw = float(candidate.mean()) - before
    p_worse, p_better = upper_tail(d / error, noise.df), upper_tail(-d / error, noise.df)
    if m > 1:
        fewer = noise.deviation * spread_factor(k, m - 1, noise, leverage)
        ordered = np.sort(pulled)
        without_worst = float(ordered[:-1].mean()) - before
        without_best = float(ordered[1:].mean()) - before
        p_worse = max(p_worse, min(1.0, upper_tail(without_worst / fewer, noise.df) / LEFT_OUT_GAIN))
        p_better = max(p_better, min(1.0, upper_tail(-without_best / fewer, noise.df) / LEFT_OUT_GAIN))
    return Evidence(
        d, error, d - half, d + half, p_worse, p_better,
        raw, upper_tail(raw / error, noise.df), far,
        float(candidate.min()) - before, float(candidate.max()) - before, contradict(candidate, noise),
    )  # fmt: skip


def contradict(candidate: Logs, noise: Noise) -> bool:
    """Whether two or three candidate sessions lie so far apart that nobody can say which one is the bad one.

    Of three, one may be bad: the other two then agree. Of two, neither can be called so. With more sessions, far ones
    are recognised by the others (`winsorised`) and a larger variance by itself (`with_unrest`).
    """
    if candidate.size not in (2, 3):
        return False
    ordered = np.sort(candidate)
    apart = float(np.diff(ordered).min())
    limit = critical_t(UNREST_ALPHA / 2.0, noise.df) * noise.deviation * math.sqrt(2.0 * max(1.0, noise.unrest))
    return apart > limit


def detectable(
    k: int, m: int, noise: Noise, alpha: float, power: float, leverage: float = 0.0, material: float = 0.0
) -> float:
    """Smallest worsening found with this power when each test keeps ``alpha``, as a fraction; inf beyond any use.

    It must be found by all sessions and, at a weaker level, without the worst of them; the larger need counts. With
    two or three candidate sessions that is mostly the second. It must also measure at least ``material``, a log: the
    least change that counts, whatever its p.
    """
    df = round(noise.df, 3)
    needed = detectable_shift(alpha, df, power) * spread_factor(k, m, noise, leverage)
    weaker = LEFT_OUT_GAIN * alpha
    if m > 1 and weaker < 1.0:
        fewer = detectable_shift(weaker, df, power) * spread_factor(k, m - 1, noise, leverage)
        needed = max(needed, fewer + math.sqrt(noise.unrest) * lost_without_worst(m))
    counting = material + critical_t(1.0 - power, df) * spread_factor(k, m, noise, leverage) * noise.deviation
    return fraction(max(needed * noise.deviation, counting))


@lru_cache(maxsize=1024)
def lost_without_worst(m: int) -> float:
    """How far the mean of m normal values falls when the largest is left out, in standard deviations.

    By Blom's approximation of the largest's expectation (1958), which is a little too large.
    """
    return float(ndtri((m - 0.375) / (m + 0.25))) / (m - 1)


def fraction(log_ratio: float) -> float:
    """A log ratio as a fraction: 0.05 for 5 % more. Beyond a factor of e^50, inf."""
    return math.expm1(log_ratio) if log_ratio < 50.0 else math.inf
