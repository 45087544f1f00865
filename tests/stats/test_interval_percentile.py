"""Percentiles and intervals: the counts they need, their coverage, and failures as infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from phasegate.stats.intervals import mean_interval, median_interval, more_needed, proportion_interval
from phasegate.stats.percentile import (
    interpolated,
    nearest_rank,
    needed_for_interval,
    needed_to_leave_maximum,
    percentile_interval,
)

FINITE = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=60)


@pytest.mark.parametrize(("percent", "count"), [(50, 6), (90, 36), (95, 72), (99, 368)])
def test_a_finite_interval_needs_the_known_number_of_values(percent: float, count: int) -> None:
    """With the stated count both bounds are finite, with one less they are not."""
    assert needed_for_interval(percent) == count
    enough = percentile_interval(range(count), percent)
    assert math.isfinite(enough.low)
    assert math.isfinite(enough.high)
    assert not enough.warnings
    short = percentile_interval(range(count - 1), percent)
    assert math.isinf(short.high)
    assert f"need {count} requests" in short.warnings[-1]


@pytest.mark.parametrize(("percent", "count"), [(90, 10), (95, 20), (99, 100), (99.9, 1000)])
def test_a_percentile_needs_enough_values_to_differ_from_the_maximum(percent: float, count: int) -> None:
    """20 values for p95: with them the nearest rank is below the maximum, with 19 it is the maximum."""
    assert needed_to_leave_maximum(percent) == count
    values = list(range(count))
    assert nearest_rank(values, percent) == count - 2
    assert nearest_rank(values[:-1], percent) == count - 2 == max(values[:-1])


def test_warnings_say_what_is_needed_and_what_is_there() -> None:
    """A remedy, not a complaint."""
    assert percentile_interval([1.0] * 9, 95).warnings == (
        "need 20 requests for p95 to differ from the maximum, have 9",
        "need 72 requests for a finite 95% interval of p95, have 9",
    )


def test_failed_requests_are_the_slowest_of_all() -> None:
    """Two failures of twenty put infinity at p95, and leave the median where it was."""
    values = [float(n) for n in range(18)]
    assert nearest_rank(values, 95, failed=2) == math.inf
    assert nearest_rank(values, 50, failed=2) == 9.0
    assert percentile_interval(values, 50, failed=2).failed == 2


@given(FINITE, st.floats(1, 100))
def test_nearest_rank_agrees_with_its_definition(values: list[float], percent: float) -> None:
    """It is a value of the sample; at least that share lies at or below it, and less below."""
    found = nearest_rank(values, percent)
    array = np.array(values)
    assert found in values
    assert (array <= found).mean() >= percent / 100 - 1e-9
    assert (array < found).mean() < percent / 100 + 1e-9


@given(FINITE, st.floats(1, 100))
def test_interpolation_agrees_with_numpy(values: list[float], percent: float) -> None:
    """The percentile that other tools print."""
    assert interpolated(values, percent) == pytest.approx(float(np.percentile(values, percent)))


@given(st.integers(1, 300), st.sampled_from([10.0, 50.0, 90.0, 95.0, 99.0]))
def test_each_bound_errs_at_most_in_half_of_the_rest(n: int, percent: float) -> None:
    """By the binomial law neither bound misses the true percentile more often than 2.5 %, and none is slack."""
    ranks = percentile_interval(range(1, n + 1), percent)
    share = percent / 100
    if math.isfinite(ranks.low):
        assert stats.binom.cdf(ranks.low - 1, n, share) <= 0.025
        assert stats.binom.cdf(ranks.low, n, share) > 0.025
    if math.isfinite(ranks.high):
        assert stats.binom.sf(ranks.high - 1, n, share) <= 0.025
        assert stats.binom.sf(ranks.high - 2, n, share) > 0.025


def test_the_interval_of_the_median_covers_it_as_often_as_it_says() -> None:
    """2,000 skewed samples of 8 (seed 5): coverage is at least 95 %, within the error of the count."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(2000):
        found = median_interval(rng.exponential(size=8).tolist())
        covered += found.low <= math.log(2) <= found.high
    assert covered / 2000 > 0.95 - 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_a_median_of_five_has_no_finite_interval_and_says_so() -> None:
    """Six values are needed."""
    found = median_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.median, found.low, found.high) == (3.0, -math.inf, math.inf)
    assert "need 6 requests" in found.warnings[0]


@pytest.mark.parametrize(
    ("values", "percent", "message"),
    [([], 50, "at least one"), ([math.nan], 50, "NaN"), ([1.0], 0, "percent is 0"), ([1.0], 101, "percent is 101")],
)
def test_bad_input_of_a_percentile_is_named(values: list[float], percent: float, message: str) -> None:
    """One clear line."""
    with pytest.raises(ValueError, match=message):
        nearest_rank(values, percent)


def test_the_mean_interval_is_students() -> None:
    """Against scipy's own."""
    values = [1.0, 2.0, 4.0, 8.0]
    found = mean_interval(values, 0.05)
    low, high = stats.t.interval(0.9, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_more_is_needed_the_nearer_the_boundary() -> None:
    """The number asked for grows as the estimate nears the margin, but not beyond resolving half of it."""
    values = [1.6, 1.8, 2.0, 2.2, 2.4]
    far, near, on = (more_needed(mean_interval(values, 0.05), [bound]) for bound in (6.0, 2.9, 2.01))
    assert 1 <= far <= near <= on < 10
    assert more_needed(mean_interval([-9.0, 9.0, -9.0, 9.0, 0.1], 0.05), [0.2]) == 200


@pytest.mark.parametrize(("hits", "n"), [(0, 32), (1, 32), (16, 32), (32, 32)])
def test_the_interval_of_a_share_is_exact(hits: int, n: int) -> None:
    """At each bound the observed count, or one further out, has a chance of exactly alpha."""
    found = proportion_interval(hits, n, 0.05)
    if hits:
        assert stats.binom.sf(hits - 1, n, found.low) == pytest.approx(0.05)
    if hits < n:
        assert stats.binom.cdf(hits, n, found.high) == pytest.approx(0.05)
