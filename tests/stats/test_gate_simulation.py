"""The gate's error rates in small: seeded builds through the product's own functions, in seconds."""

from __future__ import annotations

from benchmarks._gate_noise import SERVER
from benchmarks.gate_simulation import TPOT, TTFT, Tally, interval, simulate, table


def test_unchanged_builds_rarely_alarm_and_slower_ones_are_found_in_the_right_phase() -> None:
    builds = 25
    tallies = simulate(builds, seed=7, noise=SERVER)
    ours = [one for one in tallies if one.name == "phasegate"]
    assert len(ours) == 3
    for one in ours:
        assert one.builds == builds
        assert one.alarms <= 1
        assert one.found[TPOT] >= builds - 1
        assert one.found[TTFT] >= builds - 1
        assert one.right_phase >= 2 * builds - 2
    others = {one.name: one for one in tallies if one.name != "phasegate"}
    assert others["Mann-Whitney on requests"].alarms > builds / 2, "the simulation must be able to show alarms"
    assert others["asv continuous"].found[TPOT] < builds / 2, "the simulation must be able to show misses"


def test_the_same_seed_gives_the_same_table() -> None:
    assert list(table(simulate(2, seed=3))) == list(table(simulate(2, seed=3)))


def test_intervals_of_counts_are_those_of_clopper_and_pearson() -> None:
    assert interval(0, 300)[1] < 0.0123
    assert interval(0, 299, 0.9)[1] < 0.01, "299 clean builds show 1 % with one-sided confidence 95 %"
    assert interval(3, 3)[1] == 1.0


def test_a_tally_counts_builds_by_their_unchanged_judgement() -> None:
    assert Tally("a", "b", "c").builds == 0
