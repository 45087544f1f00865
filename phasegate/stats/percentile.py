"""Percentiles by nearest rank, with failures as infinity, and intervals from order statistics.

A nearest rank is a value that some request really had, and it stays meaningful when failed requests stand in the
sample as infinity. The interval is distribution-free: the number of values below the true percentile is binomial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True, slots=True)
class PercentileInterval:
    """A percentile and the order statistics that enclose the true one.

    Attributes:
        percent: which percentile, such as 95.
        value: the nearest rank; infinity when it falls on a failed request.
        low, high: bounds; minus or plus infinity where there are too few values for a bound.
        n: values, failures included.
        failed: failures among them.
        confidence: two-sided, each tail half of the rest.
        warnings: what is missing, worded as remedies.
    """

    percent: float
    value: float
    low: float
    high: float
    n: int
    failed: int
    confidence: float
    warnings: tuple[str, ...]


def nearest_rank(values: Sequence[float], percent: float, *, failed: int = 0) -> float:
    """The smallest value that at least ``percent`` of all requests do not exceed.

    ``failed`` requests count as infinity: a failed request is never fast.

    Raises:
        ValueError: no value at all, a NaN, or a percent outside (0, 100].
    """
    ordered = _ordered(values, percent, failed)
    # Rounding before the ceiling keeps 95 % of 20 at rank 19, although 0.95 * 20 is 19.000000000000004 at times.
    rank = max(1, math.ceil(round(percent / 100 * len(ordered), 9)))
    return ordered[rank - 1]


def needed_to_leave_maximum(percent: float) -> int:
    """How many values a percentile above 50 needs before it can differ from the maximum: 20 for 95."""
    _check_percent(percent)
    return math.ceil(round(100 / (100 - percent), 9)) if percent < 100 else 0


def needed_for_interval(percent: float, confidence: float = 0.95) -> int:
    """How many values a percentile needs for two finite bounds: 6 for 50, 36 for 90, 72 for 95, 368 for 99.

    With n values the largest is a valid upper bound when p^n <= (1 - confidence) / 2, and the smallest a valid
    lower bound when (1 - p)^n is.
    """
    _check_percent(percent)
    rarer = max(percent, 100 - percent) / 100
    return math.ceil(round(math.log((1 - confidence) / 2) / math.log(rarer), 9)) if percent < 100 else 0


def percentile_interval(
    values: Sequence[float], percent: float, *, failed: int = 0, confidence: float = 0.95
) -> PercentileInterval:
    """A percentile by nearest rank with its distribution-free interval.

    Raises:
        ValueError: no value at all, a NaN, or a percent outside (0, 100).
    """
    if not 0 < percent < 100:
        raise ValueError(f"an interval needs a percentile between 0 and 100, got {percent}")
    ordered = _ordered(values, percent, failed)
    n, tail = len(ordered), (1 - confidence) / 2
    # The number of values below the true percentile is Binomial(n, p). Bounds are the innermost order statistics
    # with an error of at most `tail` each (David and Nagaraja, Order Statistics, section 7.1).
    low_rank = _highest_low_rank(n, percent / 100, tail)
    high_rank = n + 1 - _highest_low_rank(n, 1 - percent / 100, tail)
    return PercentileInterval(
        percent=percent,
        value=nearest_rank(values, percent, failed=failed),
        low=ordered[low_rank - 1] if low_rank >= 1 else -math.inf,
        high=ordered[high_rank - 1] if high_rank <= n else math.inf,
        n=n,
        failed=failed,
        confidence=confidence,
        warnings=tuple(_warnings(n, percent, confidence)),
    )


def _highest_low_rank(n: int, share: float, tail: float) -> int:
    """Largest rank r with P(Binomial(n, share) < r) <= tail, or 0 when not even the first rank will do."""
    rank = int(stats.binom.ppf(tail, n, share))
    # ppf gives the smallest k with cdf(k) >= tail; rounding may put it one off on either side.
    while rank > 0 and float(stats.binom.cdf(rank - 1, n, share)) > tail:
        rank -= 1
    while rank < n and float(stats.binom.cdf(rank, n, share)) <= tail:
        rank += 1
    return rank


def _warnings(n: int, percent: float, confidence: float) -> list[str]:
    lines = []
    name = f"p{percent:g}"
    leave = needed_to_leave_maximum(percent)
    if percent > 50 and n < leave:
        lines.append(f"need {leave} requests for {name} to differ from the maximum, have {n}")
    needed = needed_for_interval(percent, confidence)
    if n < needed:
        lines.append(f"need {needed} requests for a finite {confidence:.0%} interval of {name}, have {n}")
    return lines


def _ordered(values: Sequence[float], percent: float, failed: int) -> list[float]:
    _check_percent(percent)
    if failed < 0:
        raise ValueError(f"failed is {failed}; it counts requests and cannot be negative")
    ordered = sorted(float(value) for value in values) + [math.inf] * failed
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    if any(math.isnan(value) for value in ordered):
        raise ValueError("a percentile of NaN is meaningless; leave undefined values out of the sample")
    return ordered


def _check_percent(percent: float) -> None:
    if not 0 < percent <= 100:
        raise ValueError(f"percent is {percent}; it must lie in (0, 100]")


def interpolated(values: Sequence[float], percent: float) -> float:
    """The percentile by linear interpolation between neighbours, as most tools print it (Hyndman and Fan, type 7).

    For successful requests only: infinity cannot be interpolated. Use `nearest_rank` to count failures.

    Raises:
        ValueError: no value, one that is not finite, or a percent outside (0, 100].
    """
    ordered = _ordered(values, percent, 0)
    if math.isinf(ordered[-1]) or math.isinf(ordered[0]):
        raise ValueError("interpolation needs finite values; use nearest_rank where failures count as infinity")
    place = percent / 100 * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
