"""The gate's error rates in small: seeded builds through the product's own functions, in seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks._gate_noise import SERVER, draw_sessions
from benchmarks._odd_sessions import odd_table, simulate_odd
from benchmarks.gate_simulation import TPOT, TTFT, Tally, interval, share, simulate, table


def test_unchanged_builds_rarely_alarm_and_slower_ones_are_found_in_the_right_phase() -> None:
    builds = 25
    tallies = simulate(builds, seed=7, noise=SERVER)
    ours = [one for one in tallies if one.name == "phasegate"]
    assert len(ours) == 4
    looks = ours.pop()
    assert looks.baseline == "5 to 16 blocks x 2"
    assert looks.alarms <= 1
    assert min(looks.found.values()) >= builds - 4, "two requests a block find a little less than fifty"
    for one in ours:
        assert one.builds == builds
        assert one.alarms <= 1
        assert one.found[TPOT] >= builds - 1
        assert one.found[TTFT] >= builds - 1
        assert one.right_phase >= 2 * builds - 2
    others = {one.name: one for one in tallies if one.name != "phasegate"}
    assert others["Mann-Whitney on requests"].alarms > builds / 2, "the simulation must be able to show alarms"
    assert others["asv continuous"].found[TPOT] < builds / 2, "the simulation must be able to show misses"


def test_odd_sessions_raise_no_alarm_and_forty_per_cent_are_found() -> None:
    """Kinds, whole milliseconds and a step two sessions ago; the documentation has the shares of many builds."""
    builds = 8
    tallies = simulate_odd(builds, seed=7, noise=SERVER)
    assert [one.builds for one in tallies] == [builds] * 5
    for one in tallies:
        assert one.alarms <= 1, one.observations
        assert one.found >= 2 * builds - 3, one.observations
        assert one.undecided > 0, one.observations
    assert [one.hidden is None for one in tallies] == [True] * 4 + [False]
    assert (tallies[-1].hidden or 0) <= 2
    assert len(list(odd_table(tallies, share))) == 7


def test_the_same_seed_gives_the_same_table() -> None:
    assert list(table(simulate(2, seed=3))) == list(table(simulate(2, seed=3)))


def test_a_scattered_candidate_deviates_so_many_times_as_much_and_its_baseline_as_before() -> None:
    scattered = replace(SERVER, candidate_scatter=2.0, bad_sessions=0.0)
    calm = replace(SERVER, bad_sessions=0.0)
    one, two = (draw_sessions(np.random.default_rng(4), noise, 20, 200, 20) for noise in (calm, scattered))
    assert np.array_equal(one.requests[:20], two.requests[:20])
    assert np.array_equal(one.sentinel, two.sentinel)
    spreads = [np.log(np.median(drawn.requests[20:], axis=2)).std(axis=0).mean() for drawn in (one, two)]
    assert spreads[1] == pytest.approx(2 * spreads[0], rel=0.15), "requests keep their own part"


def test_every_number_of_candidate_sessions_has_its_row() -> None:
    rows = simulate(1, seed=3, noise=replace(SERVER, candidate_scatter=2.0), by_sessions=True)
    assert [one.candidate for one in rows] == 2 * [f"{count} sessions" for count in range(2, 9)]
    assert {one.builds for one in rows} == {1}


def test_intervals_of_counts_are_those_of_clopper_and_pearson() -> None:
    assert interval(0, 300)[1] < 0.0123
    assert interval(0, 299, 0.9)[1] < 0.01, "299 clean builds show 1 % with one-sided confidence 95 %"
    assert interval(3, 3)[1] == 1.0


def test_a_tally_counts_builds_by_their_unchanged_judgement() -> None:
    assert Tally("a", "b", "c").builds == 0
