"""The numbers of one comparison: a moderated t-test on session logs that no single session can decide.

d  = mean(candidate) - mean(baseline)           logs, far values pulled in, positive for worse
SE = s sqrt(u g(m,r)/m + g(k,r)/k)              s moderated, u the candidate's unrest (`compare_noise`), g for
                                                neighbouring sessions that resemble each other
p  = max(p of all, p without the worst candidate session / 5)

Sessions of one level; those at two levels are put together in `compare_levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from phasegate.stats.compare_noise import UNREST_ALPHA, Noise, error_df, spread_factor
from phasegate.stats.kinds import Levels
from phasegate.stats.power import critical_t, detectable_shift, upper_tail
from phasegate.stats.winsor import SCALE_FLOOR, winsorised

Logs = NDArray[np.float64]

LEFT_OUT_GAIN = 5.0
"""How much weaker the evidence without the worst session may be: it rests on fewer sessions, the best of them."""


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
        d_worse, d_better: the least difference behind ``p_worse`` and ``p_better``, positive in its own direction.
        p_best, d_best, best_count: p of "worse", difference and baseline sessions of the better level, which is all of
            the baseline where it has but one.
        gap: distance of the baseline's levels; 0 for one.
        levels: those levels, or None.
        split: which candidate sessions are of the worse of two kinds; None for one kind.
        rounding: what rounding may make up of a worsening.
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
    d_worse: float
    d_better: float
    p_best: float
    d_best: float
    best_count: int
    gap: float = 0.0
    levels: Levels | None = None
    split: NDArray[np.bool_] | None = None
    rounding: float = 0.0


def weigh(
    baseline: Logs,
    candidate: Logs,
    noise: Noise,
    *,
    leverage: float,
    confidence: float,
    rounding: tuple[float, float] = (0.0, 0.0),
) -> Evidence:
    """The evidence of a comparison of sessions of one level.

    Args:
        baseline: logs, one per session; empty in the paired case, where ``candidate`` holds log ratios per block.
        candidate: logs, at least one.
        rounding: what rounding may make up of a worsening and of an improvement; only what goes beyond it counts.
    """
    k, m = baseline.size, candidate.size
    before = float(winsorised(baseline, least_scale=max(SCALE_FLOOR, noise.rounding))[0].mean()) if k else 0.0
    pulled, far = winsorised(candidate, noise.deviation)
    d = float(pulled.mean()) - before
    error, df = noise.deviation * spread_factor(k, m, noise, leverage), error_df(k, m, noise, leverage)
    half = critical_t((1.0 - confidence) / 2.0, df) * error
    raw = float(candidate.mean()) - before
    p_worse, p_better = upper_tail((d - rounding[0]) / error, df), upper_tail((-d - rounding[1]) / error, df)
    if m > 1:
        fewer = noise.deviation * spread_factor(k, m - 1, noise, leverage)
        left = error_df(k, m - 1, noise, leverage, shown_by=m)
        ordered = np.sort(pulled)
        without_worst = float(ordered[:-1].mean()) - before
        without_best = float(ordered[1:].mean()) - before
        p_worse = max(p_worse, min(1.0, upper_tail((without_worst - rounding[0]) / fewer, left) / LEFT_OUT_GAIN))
        p_better = max(p_better, min(1.0, upper_tail((-without_best - rounding[1]) / fewer, left) / LEFT_OUT_GAIN))
    return Evidence(
        d, error, d - half - rounding[0], d + half + rounding[1], p_worse, p_better,
        raw, upper_tail((raw - rounding[0]) / error, df), far,
        float(candidate.min()) - before, float(candidate.max()) - before, contradict(candidate, noise),
        d_worse=d, d_better=-d, p_best=p_worse, d_best=d, best_count=k, rounding=rounding[0],
    )  # fmt: skip


def contradict(candidate: Logs, noise: Noise) -> bool:
    """Whether two or three candidate sessions lie so far apart that nobody can say which one is the bad one.

    Of three, one may be bad: the other two then agree. Of two, neither can be called so. With more sessions, far ones
    are recognised by the others (`winsorised`) and a larger variance by itself (`with_unrest`).
    """
    if candidate.size not in (2, 3):
        return False
    ordered = np.sort(candidate)
    return float(np.diff(ordered).min()) > apart_beyond_noise(noise)


def apart_beyond_noise(noise: Noise) -> float:
    """How far two sessions lie apart, a log, where the baseline's noise no longer explains it."""
    # By the baseline's noise alone: what candidate sessions add to it is in question where this is asked.
    return critical_t(UNREST_ALPHA / 2.0, noise.df) * noise.deviation * math.sqrt(2.0)


def detectable(
    k: int,
    m: int,
    noise: Noise,
    alpha: float,
    power: float,
    leverage: float = 0.0,
    material: float = 0.0,
    beyond: float = 0.0,
) -> float:
    """Smallest worsening found with this power when each test keeps ``alpha``, as a fraction; inf beyond any use.

    It must be found by all sessions and, at a weaker level, without the worst of them; the larger need counts. With
    two or three candidate sessions that is mostly the second. It must also measure at least ``material``, a log: the
    least change that counts, whatever its p. ``beyond`` is a log that a worsening must exceed before any of it counts,
    such as what rounding makes up.
    """
    factor, limit_df = spread_factor(k, m, noise, leverage), round(error_df(k, m, noise, leverage), 3)
    df = max(round(noise.df, 3), limit_df)
    needed = detectable_shift(alpha, df, power, limit_df) * factor
    weaker = LEFT_OUT_GAIN * alpha
    if m > 1 and weaker < 1.0:
        limit_df = round(error_df(k, m - 1, noise, leverage, shown_by=m), 3)
        fewer = detectable_shift(weaker, df, power, limit_df) * spread_factor(k, m - 1, noise, leverage)
        needed = max(needed, fewer + math.sqrt(noise.unrest) * lost_without_worst(m))
    counting = material + critical_t(1.0 - power, df) * factor * noise.deviation
    return fraction(max(needed * noise.deviation + beyond, counting))


@lru_cache(maxsize=1024)
def lost_without_worst(m: int) -> float:
    """How far the mean of m normal values falls when the largest is left out, in standard deviations.

    By Blom's approximation of the largest's expectation (1958), which is a little too large.
    """
    return float(ndtri((m - 0.375) / (m + 0.25))) / (m - 1)


def fraction(log_ratio: float) -> float:
    """A log ratio as a fraction: 0.05 for 5 % more. Beyond a factor of e^50, inf."""
    return math.expm1(log_ratio) if log_ratio < 50.0 else math.inf
