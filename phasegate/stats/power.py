"""What a comparison could have found: exact, by the non-central t distribution.

The usual sum of two t quantiles is too small when few degrees of freedom meet a small alpha.
"""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit

POWER = 0.99
"""Chance with which an effect of the detectable size is found."""

_MOST_SHIFT = 1e6


def upper_tail(t: float, df: float) -> float:
    """P(T > t) of Student's t."""
    return float(stdtr(df, -t))


def critical_t(alpha: float, df: float) -> float:
    """The t beyond which a one-sided test at ``alpha`` rejects."""
    return -float(stdtrit(df, alpha))


@lru_cache(maxsize=4096)
def detectable_shift(alpha: float, df: float, power: float = POWER, limit_df: float | None = None) -> float:
    """Effect, in standard errors, that a one-sided t-test at ``alpha`` finds with chance ``power``; inf where that is
    beyond any use.

    Args:
        df: degrees of freedom with which the standard error is known.
        limit_df: those by which the test sets its limit, where fewer.
    """
    limit = critical_t(alpha, df if limit_df is None else limit_df)

    def missing(shift: float) -> float:
        return float(nctdtr(df, shift, limit)) - (1.0 - power)

    if not math.isfinite(limit):
        return math.inf
    low, high = 0.0, limit + 3.0
    # With 1 degree of freedom the scale itself is all but unknown, and shifts run to hundreds of standard errors.
    while missing(high) > 0.0:
        low, high = high, 2.0 * high
        if high > _MOST_SHIFT:
            return math.inf
    return float(brentq(missing, low, high, xtol=1e-6))
