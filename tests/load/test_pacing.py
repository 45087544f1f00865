"""Schedules: their mean rate, their burstiness, their order, and that a seed decides all of it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.load.pacing import EVEN, Rate, bursty, even, mean_rate, poisson, replay

RATES = st.floats(0.1, 500)
COUNTS = st.integers(0, 200)
SEEDS = st.integers(0, 2**32)
BURSTINESS = st.one_of(st.floats(0.05, 50), st.just(EVEN))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    first, last = draw(RATES), draw(RATES)
    return Rate.constant(first) if draw(st.booleans()) else Rate(first, last, draw(st.floats(0.01, 60)))


@settings(max_examples=60, deadline=None)
@given(rates(), COUNTS, BURSTINESS, SEEDS)
def test_a_schedule_starts_at_zero_never_falls_and_repeats_with_its_seed(
    rate: Rate, count: int, burstiness: float, seed: int
) -> None:
    """Whatever the rate, the ramp and the burstiness; its length is what was asked for."""
    offsets = bursty(rate, count, burstiness, rng(seed))
    assert len(offsets) == count
    assert offsets[:1] == (0.0,) * min(count, 1)
    assert all(math.isfinite(offset) for offset in offsets)
    assert list(offsets) == sorted(offsets)
    assert offsets == bursty(rate, count, burstiness, rng(seed))


def test_another_seed_gives_another_schedule() -> None:
    """Chance really comes from the generator."""
    assert poisson(Rate.constant(5), 20, rng(1)) != poisson(Rate.constant(5), 20, rng(2))


def test_an_even_rate_has_equal_gaps() -> None:
    """Four a second are 250 ms apart; an infinite burstiness is the same."""
    assert even(Rate.constant(4), 5) == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert bursty(Rate.constant(4), 5, EVEN, rng()) == even(Rate.constant(4), 5)


@pytest.mark.parametrize("burstiness", [0.25, 0.5, 1.0, 2.0, 8.0])
def test_burstiness_is_the_shape_and_leaves_the_mean_rate_alone(burstiness: float) -> None:
    """The gaps' coefficient of variation is 1 / sqrt(shape), their mean 1 / rate (20,000 gaps)."""
    gaps = np.diff(bursty(Rate.constant(10), 20_001, burstiness, rng(7)))
    assert gaps.mean() == pytest.approx(0.1)
    assert gaps.std() / gaps.mean() == pytest.approx(1 / math.sqrt(burstiness), rel=0.08)


@settings(max_examples=30, deadline=None)
@given(RATES, st.integers(2, 100), st.floats(0.0005, 50), SEEDS)
def test_a_few_random_arrivals_have_the_rate_asked_for(rate: float, count: int, burstiness: float, seed: int) -> None:
    """Chance moves requests, not the load: the last is due when an even schedule's is."""
    offsets = bursty(Rate.constant(rate), count, burstiness, rng(seed))
    assert mean_rate(offsets) == pytest.approx(rate)
    assert list(offsets) == sorted(offsets)


def test_poisson_counts_vary_as_much_as_they_are_large() -> None:
    """Requests per second of a Poisson process: variance equal to the mean; of bursts, above it."""

    def dispersion(burstiness: float) -> float:
        offsets = bursty(Rate.constant(10), 40_000, burstiness, rng(3))
        counts = np.bincount(np.asarray(offsets).astype(int))[:-1]
        return float(counts.var() / counts.mean())

    assert dispersion(1.0) == pytest.approx(1.0, abs=0.1)
    assert dispersion(0.25) > 3
    assert dispersion(4.0) < 0.4


def test_a_ramp_has_its_rate_at_each_moment_and_holds_the_last() -> None:
    """From 10 to 30 a second over 10 s: 200 in the ramp, of them 75 in its first half; then one every 1/30 s."""
    offsets = np.asarray(even(Rate(10, 30, 10.0), 261))
    assert np.searchsorted(offsets, 5.0 - 1e-9) == 75
    assert np.searchsorted(offsets, 10.0 - 1e-9) == 200
    assert np.diff(offsets)[205:] == pytest.approx(1 / 30)
    assert offsets[1] == pytest.approx(0.099, abs=0.001)


def test_a_ramp_may_start_at_nothing_and_may_fall() -> None:
    """From 0 to 20 over 2 s come 20 requests, half of them after 1.41 s; a falling ramp mirrors it."""
    rising = even(Rate(0, 20, 2.0), 21)
    assert rising[10] == pytest.approx(math.sqrt(2))
    assert rising[20] == pytest.approx(2.0)
    falling = even(Rate(20, 1e-6, 2.0), 20)
    assert falling[10] == pytest.approx(2 - math.sqrt(2), abs=1e-3)


def test_a_ramp_with_equal_ends_is_a_constant_rate() -> None:
    """And a ramp that hardly rises comes arbitrarily near to it: nothing cancels."""
    assert even(Rate(5, 5, 10.0), 30) == even(Rate.constant(5), 30)
    assert even(Rate(5, 5 + 1e-12, 10.0), 30) == pytest.approx(even(Rate.constant(5), 30))


def test_an_infinite_rate_is_everything_at_once() -> None:
    """As in the field's tools; no division complains."""
    assert poisson(Rate.constant(math.inf), 3, rng()) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Rate.constant(0),
        lambda: Rate.constant(-1),
        lambda: Rate.constant(math.nan),
        lambda: Rate(1, 2, 0),
        lambda: Rate(1, math.inf, 5),
        lambda: Rate(1, 2, math.inf),
        lambda: bursty(Rate.constant(1), 3, 0.0, rng()),
        lambda: bursty(Rate.constant(1), 3, -1.0, rng()),
        lambda: replay([0.0, 1.0], 0.0),
        lambda: replay([0.0, 1.0], math.inf),
    ],
)
def test_impossible_schedules_are_refused(make: object) -> None:
    """With a ValueError, not with infinite or negative offsets."""
    assert callable(make)
    with pytest.raises(ValueError, match=r"possible|needs"):
        make()


def test_a_replay_keeps_distances_stretches_them_and_sorts() -> None:
    """Scale 2 is half the speed; the first request is due at 0 whatever the clock of the trace said."""
    assert replay([103.0, 100.0, 101.5], 2.0) == (0.0, 3.0, 6.0)
    assert replay([], 2.0) == ()


def test_the_mean_rate_counts_gaps() -> None:
    """Five requests in one second are four gaps: 4 a second; no rate without time."""
    assert mean_rate(even(Rate.constant(4), 5)) == pytest.approx(4.0)
    assert mean_rate([1.0]) is None
    assert mean_rate([1.0, 1.0]) is None
