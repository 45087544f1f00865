"""The steps that values come in: how they are found, and what rounding to them may make up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import Decision, StoredComparison
from phasegate.stats.paired import PairedComparison, compare_paired
from phasegate.stats.resolution import deviation_of_rounding, grid_step, rounding_error, rounding_of_difference


@pytest.mark.parametrize(
    ("sides", "step"),
    [
        (([0.008, 0.009000000000000001, 0.008], [0.009000000000000001]), 0.001),
        (([8.0, 9.0, 10.0], [12.0]), 1.0),
        (([8.0, 12.0, 8.0], [12.0]), 4.0),  # of one side: it does vary in steps of 4
        (([8.0, 8.0], [12.0, 12.0]), 1.0),  # each side constant: their common multiple says nothing
        (([200.0, 205.0, 195.0], [190.0]), 5.0),
        (([0.25, 0.5, 1.75], [1.0]), 0.25),
        (([20.1, 20.3, 19.8], [20.0]), 0.1),
        (([0.2, 0.2], [0.2]), 0.0),  # a value that never changes shows no step
        (([0.20185481616204595, 0.19853811146880856], [0.2160]), 0.0),
        (([200.12345, 200.12346], [200.12347]), 0.0),  # finer than a ten-thousandth
        (([], []), 0.0),
    ],
)
def test_the_largest_step_that_matters_is_found(sides: tuple[list[float], list[float]], step: float) -> None:
    assert grid_step(*sides) == pytest.approx(step, rel=1e-9)


@pytest.mark.parametrize("step", [1.0, 0.5, 10.0])
def test_one_rounded_side_shows_its_step(step: float) -> None:
    """The gate's quantised cases, with another exporter on one side."""
    values = np.random.default_rng(3).normal(200.0, 30.0, 40)
    rounded = np.round(values / step) * step
    assert grid_step(values, rounded) == grid_step(rounded, values) == pytest.approx(step)
    assert grid_step(values, np.full(40, 9.0)) == pytest.approx(1.0), "a constant side: the place of its last digit"
    assert grid_step(values, np.full(40, 200.0)) == pytest.approx(10.0), "200 is hardly rounded to 100"
    assert grid_step(values, np.full(40, 10.0)) == pytest.approx(1.0)
    assert grid_step(values, rounded[:3]) == 0.0, "three values may be round by accident"


@given(st.sampled_from([1.0, 2.0, 0.5, 10.0]), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_rounded_values_show_their_step_and_unrounded_ones_none(step: float, seed: int) -> None:
    """Whatever the unit they are then written in."""
    values = np.random.default_rng(seed).normal(200.0, 30.0, 40)
    rounded = np.round(values / step) * step
    assert grid_step(rounded[:30], rounded[30:]) == pytest.approx(step)
    assert grid_step(rounded[:30] / 1000.0, rounded[30:] / 1000.0) == pytest.approx(step / 1000.0)
    assert grid_step(values[:30], values[30:]) == 0.0


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.15, 0.3, 0.6, 1.0, 3.0])
def test_the_mean_of_rounded_values_is_off_by_no_more_than_is_reckoned_with(spread: float) -> None:
    """For every place of the true mean between two steps; where it may be off by half a step, half is reckoned with."""
    rng = np.random.default_rng(7)
    missed = 0
    for true in np.linspace(8.01, 8.99, 21):
        edges = np.arange(-20.5, 40.0)
        shares = np.diff(norm.cdf(edges, true, max(spread, 1e-9)))
        bias = abs(float((shares * (edges[:-1] + 0.5)).sum()) - true)
        drawn = np.round(true + spread * rng.standard_normal((40, 8)))
        missed += sum(bias > rounding_error(row, 1.0) + 1e-3 for row in drawn)
    assert missed <= 0.05 * 21 * 40
    assert rounding_error([8.0] * 8, 1.0) == rounding_error([8.0, 9.0, 8.0, 9.0], 1.0) == 0.5


def test_values_that_vary_by_many_steps_are_not_held_to_be_coarse() -> None:
    values = np.round(np.random.default_rng(1).normal(200.0, 2.5, 12))
    assert rounding_error(values, 1.0) < 1e-3
    assert rounding_error(values, 0.0) == 0.0


def test_one_far_value_does_not_show_that_values_vary() -> None:
    assert rounding_error([8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 14.0], 1.0) == 0.5


def test_both_sides_may_be_rounded_apart() -> None:
    """8.49 and 8.51 are 8 and 9: the whole difference may be rounding."""
    rise, _ = rounding_of_difference([8.0] * 8, [9.0] * 3, 0.5)
    assert rise == pytest.approx(math.log(9 / 8))
    assert rounding_of_difference([8.0], [9.0], 0.0) == (0.0, 0.0)
    assert rounding_of_difference([2.0], [1.0], 1.0)[0] == math.inf


def test_the_least_deviation_is_that_of_one_step() -> None:
    drawn = np.round(np.random.default_rng(2).uniform(800.0, 900.0, 20_000)) - np.round(0.0)
    off = drawn - np.random.default_rng(2).uniform(800.0, 900.0, 20_000)
    assert float(np.std(off / 850.0)) == pytest.approx(deviation_of_rounding(1.0, 850.0), rel=0.05)


def coarse(baseline: list[float], candidate: list[float]) -> StoredComparison:
    return StoredComparison("chat tpot", "tpot", baseline, candidate, 0.05)


def test_whole_milliseconds_prove_no_step_of_one_and_still_show_forty_per_cent() -> None:
    eights = [0.008, 0.009000000000000001, 0.009, 0.008, 0.008, 0.008, 0.008, 0.009]
    same = compare_stored([coarse(eights, [0.009, 0.009000000000000001, 0.009])]).rows[0]
    assert same.decision is Decision.UNDECIDED
    assert same.step == pytest.approx(0.001)
    assert same.remedy == "write the values with more digits"
    assert same.p is not None
    assert same.p > 0.1
    assert compare_stored([coarse(eights, [0.012] * 3)]).rows[0].decision is Decision.REGRESSED
    assert compare_stored([coarse([0.008] * 8, [0.011, 0.012, 0.011])]).rows[0].decision is Decision.REGRESSED


def test_a_step_that_is_told_is_not_looked_for_in_medians() -> None:
    """Medians of even counts lie on half steps; the caller knows the requests."""
    halves = [8.5, 8.0, 8.5, 9.0, 8.5, 8.0, 8.5, 9.0]
    told = StoredComparison("chat tpot", "tpot", halves, [9.0, 9.0, 9.0], 0.05, step=1.0)
    row = compare_stored([told]).rows[0]
    assert row.step == 1.0
    assert row.decision is Decision.UNDECIDED


def test_throughput_in_steps_is_held_to_the_same() -> None:
    one = StoredComparison("chat rate", "rate", [9.0, 8.0] * 4, [8.0] * 3, 0.05, higher_is_better=True)
    assert compare_stored([one]).rows[0].decision is Decision.UNDECIDED
    fallen = StoredComparison("chat rate", "rate", [12.0, 11.0] * 4, [6.0] * 3, 0.05, higher_is_better=True)
    assert compare_stored([fallen]).rows[0].decision is Decision.REGRESSED


def test_paired_blocks_in_steps_prove_no_step_either() -> None:
    def judged(candidate: float) -> Decision:
        one = PairedComparison("chat tpot", "tpot", [8.0] * 8, [candidate] * 8, 0.05)
        return compare_paired([one]).rows[0].row.decision

    assert judged(9.0) is Decision.UNDECIDED
    assert judged(12.0) is Decision.REGRESSED
