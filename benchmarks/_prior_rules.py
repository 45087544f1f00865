"""How other tools decide, each a small reimplementation of its published rule, not the tool itself.

All judge one candidate session, as those tools do; baseline sessions are those they look at. Every function gets
requests of sessions x comparisons x requests (baseline) and comparisons x requests (candidate), and returns which
comparisons it calls slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def mean_five_percent(baseline: Floats, candidate: Floats) -> Flags:
    """pytest-benchmark ``--benchmark-compare-fail=mean:5%``: the mean is 5 % above that of the last saved run."""
    return np.asarray(candidate.mean(axis=1) > 1.05 * baseline[-1].mean(axis=1))


def mann_whitney_on_requests(baseline: Floats, candidate: Floats) -> Flags:
    """Mann-Whitney on the pooled requests, one-sided, p < 0.05, requests taken as independent."""
    pooled = np.concatenate(list(baseline), axis=1)
    return _mann_whitney(candidate, pooled, "greater") < 0.05


def bencher_t_test(baseline: Floats, candidate: Floats) -> Flags:
    """Bencher's t-test threshold, upper boundary 0.99: above mean + t * deviation of the sessions' values so far."""
    history = baseline.mean(axis=2)
    limit = stats.t.ppf(0.99, history.shape[0] - 1)
    return np.asarray(candidate.mean(axis=1) > history.mean(axis=0) + limit * history.std(axis=0, ddof=1))


def asv(baseline: Floats, candidate: Floats) -> Flags:
    """asv ``continuous``: medians differ by the default factor 1.1, and Mann-Whitney's two-sided p < 0.002."""
    last = baseline[-1]
    slower = np.median(candidate, axis=1) > 1.1 * np.median(last, axis=1)
    return np.asarray(slower & (_mann_whitney(candidate, last, "two-sided") < 0.002))


def criterion(baseline: Floats, candidate: Floats) -> Flags:
    """criterion.rs: t-test at 0.05 against the last run, and the 95 % interval of the mean's change above its noise
    threshold of 1 %. The interval is normal instead of bootstrapped."""
    last = baseline[-1]
    n = last.shape[1]
    old, new = last.mean(axis=1), candidate.mean(axis=1)
    ratio = new / old
    error = ratio * np.sqrt(candidate.var(axis=1, ddof=1) / new**2 / n + last.var(axis=1, ddof=1) / old**2 / n)
    p = stats.ttest_ind(candidate, last, axis=1, equal_var=False).pvalue
    return np.asarray((p < 0.05) & (ratio - 1.0 - 1.96 * error > 0.01))


def _mann_whitney(first: Floats, second: Floats, alternative: Literal["two-sided", "less", "greater"]) -> Floats:
    """p-values, one per comparison."""
    found = stats.mannwhitneyu(first, second, alternative=alternative, axis=1, method="asymptotic")
    return np.asarray(found.pvalue, dtype=np.float64)


RULES: dict[str, Callable[[Floats, Floats], Flags]] = {
    "pytest-benchmark mean:5%": mean_five_percent,
    "Mann-Whitney on requests": mann_whitney_on_requests,
    "Bencher t-test 0.99": bencher_t_test,
    "asv continuous": asv,
    "criterion": criterion,
}

WHOLE_BASELINE = ("Mann-Whitney on requests", "Bencher t-test 0.99")
"""Rules that look at every stored session; the others look at the last one."""
