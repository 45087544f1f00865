"""Variances from few sessions, steadied by the variances of the other comparisons of the same metric.

Each comparison's variance has few degrees of freedom; the comparisons of one metric resemble each other. An inverse
chi-squared prior is fitted to them by moments, and each variance is the weighted mean of its own and the prior's
(Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3:3, sections 4 and 6.2: the moderated t).

One departure: the prior never gets more than twice the weight of a comparison's own data. All comparisons of a session
share its host, so their variances are not independent, and alike variances do not prove that the common value is well
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from scipy.special import digamma, polygamma

LEAST_COMPARISONS = 3
"""Fewer variances say nothing about how variances vary; each comparison then stands on its own."""

MOST_PRIOR_WEIGHT = 2.0
"""Degrees of freedom of the prior, at most, in those of one comparison. In simulated builds 1 and 2 give equally few
false alarms, and 2 decides more."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What a metric's variance is before its own data are looked at.

    Attributes:
        df: degrees of freedom, the weight against the own variance's; 0 means that nothing is known.
        variance: of single sessions' logs.
    """

    df: float
    variance: float


NOTHING_KNOWN = Prior(0.0, 0.0)


def fit_prior(variances: Sequence[float], dfs: Sequence[float]) -> Prior:
    """The prior of some comparisons of one metric.

    Args:
        variances: one positive sample variance per comparison.
        dfs: their degrees of freedom, positive.
    """
    if len(variances) < LEAST_COMPARISONS:
        return NOTHING_KNOWN
    logs = [
        math.log(one) - float(digamma(df / 2)) + math.log(df / 2) for one, df in zip(variances, dfs, strict=True)
    ]  # fmt: skip
    middle = fmean(logs)
    spread = math.fsum((one - middle) ** 2 for one in logs) / (len(logs) - 1)
    excess = spread - fmean(float(polygamma(1, df / 2)) for df in dfs)
    ceiling = MOST_PRIOR_WEIGHT * median(dfs)
    if excess <= 0.0:
        return Prior(ceiling, math.exp(middle))
    df = 2.0 * inverse_trigamma(excess)
    variance = math.exp(middle + float(digamma(df / 2)) - math.log(df / 2))
    return Prior(min(df, ceiling), variance)


def moderate(variance: float, df: float, prior: Prior) -> tuple[float, float]:
    """A comparison's variance drawn towards the prior, and its degrees of freedom."""
    total = df + prior.df
    return (prior.df * prior.variance + df * variance) / total, total


def inverse_trigamma(value: float) -> float:
    """The x > 0 whose trigamma is ``value`` > 0, by Newton's method (Smyth 2004, appendix)."""
    if value > 1e7:
        return 1.0 / math.sqrt(value)
    if value < 1e-6:
        return 1.0 / value
    x = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
