"""Neighbouring sessions resemble each other; what that does to the variance of their mean.

Sessions follow each other on one host, so their noise is modelled as AR(1): the correlation of two sessions h apart is
r^h. A mean of n such values varies more than one of n independent values, and their sample variance is too small. Few
sessions cannot show a small correlation, so a least one is assumed rather than hoped away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

LEAST_CORRELATION = 0.3
"""Correlation of neighbouring sessions assumed where the data show less: some ten sessions cannot exclude it."""

MOST_CORRELATION = 0.8
"""Correlation beyond which an estimate is not followed: from there on a series is a drift, not noise."""

LEAST_SESSIONS = 12
"""Shorter series say next to nothing: the error of the correlation of eight values is 0.35."""


@lru_cache(maxsize=4096)
def variance_factor(n: int, r: float) -> float:
    """How many times more the mean of n correlated values varies than that of n independent ones; 1 for r = 0.

    ``g(n, r) = 1 + 2 sum_{h=1}^{n-1} (1 - h/n) r^h`` (e.g. Zieba 2010, eq. 11).
    """
    return 1.0 + 2.0 * math.fsum((1.0 - h / n) * r**h for h in range(1, n))


def unbiased(sample_variance: float, n: int, r: float) -> float:
    """The variance of single values from the sample variance (ddof 1) of n correlated ones, which is too small."""
    return sample_variance * (n - 1) / (n - variance_factor(n, r))


@lru_cache(maxsize=4096)
def degrees_of_freedom(n: int, r: float) -> float:
    """Degrees of freedom of the sample variance of n correlated values; n - 1 for r = 0.

    Squared deviations of an AR(1) series are correlated as r^2h (Bayley and Hammersley 1946).
    """
    return max(1.0, (n - 1) / variance_factor(n, r * r)) if n > 1 else 0.0


def shared_correlation(series: Sequence[NDArray[np.float64]], least: float = LEAST_CORRELATION) -> float:
    """Lag-1 correlation of neighbouring values, one for all series; never below ``least``.

    One number for all, since the sessions are the same. Sample correlations are too small by about (1 + 3 r) / n
    (Kendall 1954), which is added back. Only what exceeds the estimate's own error of 1 / sqrt(n) is followed: else
    every other build of steady sessions would pay for a correlation that is not there.
    """
    correlations: list[float] = []
    lengths: list[int] = []
    for one in series:
        if one.size < LEAST_SESSIONS:
            continue
        centred = one - one.mean()
        size = float(centred @ centred)
        if size <= 0.0:
            continue
        correlations.append(float(centred[1:] @ centred[:-1]) / size)
        lengths.append(one.size)
    if not correlations:
        return least
    # Every series counts alike, however noisy its metric.
    seen, n = fmean(correlations), fmean(lengths)
    estimate = (seen * n + 1.0) / (n - 3.0) - 1.0 / math.sqrt(n)
    return min(MOST_CORRELATION, max(least, estimate))
