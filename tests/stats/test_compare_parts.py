"""The parts of a comparison against published formulas, other implementations and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from phasegate.stats.autocorrelation import (
    LEAST_CORRELATION,
    degrees_of_freedom,
    shared_correlation,
    unbiased,
    variance_factor,
)
from phasegate.stats.moderated import NOTHING_KNOWN, fit_prior, inverse_trigamma, moderate
from phasegate.stats.multiplicity import Correction, benjamini_yekutieli, holm
from phasegate.stats.power import critical_t, detectable_shift, upper_tail
from phasegate.stats.session_level import session_level
from phasegate.stats.winsor import winsorised


def ar1(rng: np.random.Generator, rows: int, n: int, r: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    values = rng.standard_normal((rows, n))
    for i in range(1, n):
        values[:, i] = r * values[:, i - 1] + math.sqrt(1 - r * r) * values[:, i]
    return values


def test_the_variance_factor_is_that_of_correlated_means() -> None:
    drawn = ar1(np.random.default_rng(1), 40_000, 6, 0.5)
    assert drawn.mean(axis=1).var() * 6 == pytest.approx(variance_factor(6, 0.5), rel=0.03)
    assert variance_factor(6, 0.0) == 1.0
    assert variance_factor(1, 0.9) == 1.0


def test_the_sample_variance_of_correlated_values_is_corrected() -> None:
    drawn = ar1(np.random.default_rng(2), 40_000, 8, 0.5)
    assert unbiased(float(drawn.var(axis=1, ddof=1).mean()), 8, 0.5) == pytest.approx(1.0, rel=0.03)
    assert degrees_of_freedom(8, 0.0) == 7.0
    assert degrees_of_freedom(8, 0.5) < 7.0


def test_a_drift_is_seen_and_steady_sessions_keep_the_least_correlation() -> None:
    rng = np.random.default_rng(3)
    assert shared_correlation(list(ar1(rng, 10, 40, 0.8))) > 0.5
    assert shared_correlation(list(ar1(rng, 10, 40, 0.0))) == LEAST_CORRELATION
    assert shared_correlation([np.ones(20), np.arange(3.0)]) == LEAST_CORRELATION


@given(st.floats(1e-6, 1e6))
def test_trigamma_is_inverted(value: float) -> None:
    assert float(special.polygamma(1, inverse_trigamma(value))) == pytest.approx(value, rel=1e-6)


def test_the_prior_finds_what_the_variances_were_drawn_from() -> None:
    """Variances from a scaled inverse chi-squared with 6 degrees of freedom around 4."""
    rng = np.random.default_rng(4)
    true = 4.0 * 6.0 / rng.chisquare(6.0, 4000)
    seen = true * rng.chisquare(7.0, 4000) / 7.0
    prior = fit_prior(seen.tolist(), [7.0] * 4000)
    assert prior.df == pytest.approx(6.0, rel=0.15)
    assert prior.variance == pytest.approx(4.0, rel=0.1)


def test_equal_variances_get_a_prior_no_heavier_than_allowed() -> None:
    prior = fit_prior([2.0] * 10, [7.0] * 10)
    assert prior.df == 14.0


def test_one_or_two_comparisons_lend_each_other_nothing() -> None:
    assert fit_prior([1.0, 2.0], [7.0, 7.0]) == NOTHING_KNOWN
    assert moderate(3.0, 7.0, NOTHING_KNOWN) == (3.0, 7.0)


def test_holm_steps_down() -> None:
    assert falling([0.01, 0.04, 0.03, 0.005], holm) == [True, False, False, True]
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])
    assert falling([], holm) == []
    assert falling([0.04], holm) == [True]


def test_weighted_steps_divide_alpha_by_weight_among_what_still_stands() -> None:
    """0.05 of weights 1, 1 and 0.1: 1/2.1 for the first, then 0.1/1.1 for the light one, then all for the last."""
    assert holm([0.02, 0.9, 0.002], 0.05, [1.0, 1.0, 0.1]) == pytest.approx([0.05 / 2.1, 0.05, 0.005 / 1.1])
    assert holm([0.9, 0.9, 0.004], 0.05, [1.0, 1.0, 0.1]) == pytest.approx([0.05 / 2.1, 0.05 / 2.1, 0.005 / 2.1])
    # All but the light one fallen, it has the whole of alpha.
    assert holm([0.001, 0.001, 0.04], 0.05, [1.0, 1.0, 0.1])[2] == pytest.approx(0.05)


def test_weights_hold_the_chance_of_a_false_alarm() -> None:
    """Uniform p of unchanged comparisons, ten of weight 1 and ten of weight 0.1: any rejection in at most alpha."""
    rng = np.random.default_rng(1)
    weights = [1.0] * 10 + [0.1] * 10
    draws = rng.uniform(size=(4000, 20))
    alarms = sum(any(one.falls for one in Correction(0.05, weights).tested(row.tolist())) for row in draws)
    assert alarms / 4000 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert alarms > 0


def falling(p_values: list[float], rule: Callable[[list[float], float], list[float]]) -> list[bool]:
    return [p <= allowed for p, allowed in zip(p_values, rule(p_values, 0.05), strict=True)]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_advisory_rejections_agree_with_another_implementation(p_values: list[float]) -> None:
    adjusted = stats.false_discovery_control(p_values, method="by")
    if min(abs(adjusted - 0.05)) > 1e-9:
        assert falling(p_values, benjamini_yekutieli) == (adjusted <= 0.05).tolist()


@pytest.mark.parametrize("df", [1.0, 2.5, 7.0, 40.0])
@pytest.mark.parametrize("alpha", [0.01, 0.0005])
def test_the_detectable_shift_is_exact(df: float, alpha: float) -> None:
    limit = float(stats.t.ppf(1 - alpha, df))
    assert critical_t(alpha, df) == pytest.approx(limit)
    assert float(stats.nct.sf(limit, df, detectable_shift(alpha, df))) == pytest.approx(0.99, abs=1e-4)


def test_the_sum_of_two_quantiles_would_promise_too_much() -> None:
    """The planted mistake: t + t at 4 degrees of freedom misses its power."""
    limit = float(stats.t.ppf(1 - 0.0005, 4))
    naive = limit + float(stats.norm.ppf(0.99))
    assert float(stats.nct.sf(limit, 4, naive)) < 0.9
    assert detectable_shift(0.0005, 4) > naive


def test_the_upper_tail_is_students() -> None:
    assert upper_tail(2.0, 5.0) == pytest.approx(float(stats.t.sf(2.0, 5.0)))
    assert upper_tail(2.0, math.inf) == pytest.approx(float(stats.norm.sf(2.0)))


def test_far_values_are_pulled_in_and_ordinary_ones_stay() -> None:
    values = np.array([0.0, 0.01, -0.01, 0.02, -0.02, 5.0])
    pulled, far = winsorised(values)
    assert far == 1
    assert pulled[:5].tolist() == values[:5].tolist()
    assert 0.0 < pulled[5] < 0.1
    assert values[5] == 5.0


def test_few_values_stay_as_they_are_unless_a_scale_is_known() -> None:
    values = np.array([0.0, 0.01, 5.0])
    assert winsorised(values)[1] == 0
    assert winsorised(values, known_scale=0.01)[1] == 1


def test_values_that_mostly_look_equal_pull_nothing_in() -> None:
    """Over half coincide, so that the median deviation is 0; the rest is how the series is, not bad sessions."""
    values = np.log([8.0, 9.0, 9.0, 8.0, 8.0, 8.0, 8.0, 9.0])
    pulled, far = winsorised(values)
    assert far == 0
    assert pulled.tolist() == values.tolist()


def test_far_values_that_lie_together_are_a_kind_and_those_that_do_not_are_bad_sessions() -> None:
    calm = np.linspace(-0.02, 0.02, 18)
    assert winsorised(np.append(calm, [0.30, 0.31]))[1] == 0
    assert winsorised(np.append(calm, [0.15, 0.40]))[1] == 2
    assert winsorised(np.append(calm, [0.30]))[1] == 1
    assert winsorised(np.append(calm[:8], [0.15, 0.40, 0.9, 0.5]))[1] == 0, "a third of all is no few bad ones"


def test_a_known_resolution_keeps_neighbouring_steps() -> None:
    values = np.log([8.0] * 7 + [9.0])
    assert winsorised(values)[1] == 1
    assert winsorised(values, least_scale=0.034)[1] == 0


def test_a_session_level_is_its_median_and_a_high_percentile_only_with_enough_requests() -> None:
    assert session_level([3.0, 1.0, 2.0, 10.0]) == 2.5
    assert session_level([1.0] * 19, 95.0) is None
    assert session_level([float(i) for i in range(1, 21)], 95.0) == 19.0
    assert session_level([]) is None
