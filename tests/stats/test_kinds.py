"""Sessions at two levels: how kinds and a late change of level are told from noise and from single bad sessions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, Decision, StoredComparison
from phasegate.stats.kinds import Levels, clustered, levelled, levels_of, splits_by_gap, within_kinds

APART, SCALE = 0.025, 0.001
KINDS = "1101010011000001"
"""Of 16 starts, which were slow; seven."""


def found(logs: np.ndarray, apart: float = APART) -> Levels | None:
    return levels_of([logs], [apart], [SCALE])[0]


def of_kinds(kinds: str, gap: float = 0.15, noise: float = 0.005, seed: int = 1) -> np.ndarray:
    """Logs of sessions, ``1`` for a slow one."""
    rng = np.random.default_rng(seed)
    return np.array([math.log1p(gap) * int(kind) for kind in kinds]) + rng.normal(0.0, noise, len(kinds))


def values(logs: np.ndarray, level: float = 0.2) -> list[float]:
    return [level * math.exp(one) for one in logs]


def judge(baseline: np.ndarray, candidate: np.ndarray, *, tolerance: float = 0.10) -> ComparedRow:
    one = StoredComparison("chat ttft", "ttft", values(baseline), values(candidate), tolerance)
    return compare_stored([one]).rows[0]


def _between_by_within(low: np.ndarray, high: np.ndarray) -> float:
    between = low.size * high.size / (low.size + high.size) * (high.mean() - low.mean()) ** 2
    return float(between / (low.var() * low.size + high.var() * high.size))


@pytest.mark.parametrize("n", [6, 8, 12, 20, 40])
def test_one_series_in_twenty_of_one_kind_is_beyond_the_limit(n: int) -> None:
    """The limit for the sum of squares between groups is that of normal values, by simulation."""
    rng = np.random.default_rng(n)
    beyond = 0
    for row in np.sort(rng.standard_normal((1500, n)), axis=1):
        best = max(_between_by_within(row[:cut], row[cut:]) for cut in range(2, n - 1))
        beyond += best > clustered(n)
    assert 0.02 <= beyond / 1500 <= 0.09


def test_two_kinds_are_found_session_by_session() -> None:
    levels = found(of_kinds(KINDS))
    assert levels is not None
    assert [int(one) for one in levels.upper] == [int(one) for one in KINDS]
    assert levels.newest == 0
    assert levels.gap(of_kinds(KINDS)) == pytest.approx(math.log(1.15), abs=0.01)


@pytest.mark.parametrize(
    "logs",
    [
        np.random.default_rng(3).normal(0.0, 0.01, 16),
        np.linspace(0.0, 0.3, 16),
        np.array([0.0, 0.001, -0.001, 0.002, 0.3, -0.002, 0.001, 0.0]),
        np.array([0.0, 0.001, -0.001, 0.12, 0.002, 0.4, -0.002, 0.001, 0.0, 0.001]),
        of_kinds(KINDS, gap=0.02),
        np.array([0.0, 0.1]),
        np.zeros(12),
    ],
    ids=["noise", "drift", "one-bad", "two-bad-unlike", "less-than-counts", "two-sessions", "equal"],
)
def test_noise_drifts_and_bad_sessions_are_no_kinds(logs: np.ndarray) -> None:
    assert found(logs) is None


def test_a_bad_session_does_not_hide_two_kinds() -> None:
    logs = of_kinds(KINDS)
    logs[4] += 0.6
    levels = found(logs)
    assert levels is not None
    assert levels.upper[4]
    assert int(levels.upper.sum()) == 8


def test_a_bad_newest_session_hides_them_neither() -> None:
    logs = of_kinds(KINDS)
    logs[-1] += 0.6
    levels = found(logs)
    assert levels is not None
    assert levels.newest == 0
    assert int(levels.upper.sum()) == 7
    noisy = of_kinds(KINDS[:-1] + "1", gap=0.08, noise=0.016, seed=4)
    noisy[-1] += 0.5
    shared = levels_of([of_kinds(KINDS[:-1] + "1"), noisy], [APART, APART], [SCALE, SCALE])[1]
    assert shared is not None
    assert shared.newest == 0


@pytest.mark.parametrize("newest", [1, 2])
@pytest.mark.parametrize("change", [-0.22, 0.20])
def test_a_level_that_changed_lately_is_told_from_kinds_by_its_order(newest: int, change: float) -> None:
    logs = np.random.default_rng(5).normal(0.0, 0.008, 20)
    logs[-newest:] += change
    levels = found(logs)
    assert levels is not None
    assert levels.newest == newest
    assert bool(levels.upper[-1]) is (change > 0)
    assert found(np.roll(logs, 3)) is None or found(np.roll(logs, 3)).newest == 0  # type: ignore[union-attr]


def test_kinds_that_one_comparison_shows_are_found_in_a_noisier_one_of_the_same_sessions() -> None:
    clear, noisy = of_kinds("0010010100000100"), of_kinds("0010010100000100", gap=0.08, noise=0.022, seed=4)
    assert found(noisy) is None
    both = levels_of([clear, noisy], [APART, APART], [SCALE, SCALE])
    assert both[1] is not None
    assert np.array_equal(both[0].upper, both[1].upper)  # type: ignore[union-attr]
    other = of_kinds("0000000000000000", noise=0.022, seed=6)
    assert levels_of([clear, other], [APART, APART], [SCALE, SCALE])[1] is None
    assert levels_of([clear, noisy[:12]], [APART, APART], [SCALE, SCALE])[1] is None


def test_the_distance_of_levels_is_no_noise() -> None:
    logs = of_kinds(KINDS)
    upper = np.array([kind == "1" for kind in KINDS])
    assert float(levelled(logs, upper).std(ddof=1)) < 0.007 < float(logs.std(ddof=1))
    assert float(levelled(logs, upper).mean()) == pytest.approx(float(logs.mean()))
    assert levelled(logs, None) is logs
    calm = within_kinds(logs[:3], upper[:3])
    low, high = logs[:3][~upper[:3]], logs[:3][upper[:3]]
    within = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum())
    assert float(calm.var(ddof=1)) == pytest.approx(within), "three sessions of two kinds have one degree of freedom"


@pytest.mark.parametrize(
    ("sessions", "split"),
    [
        ([0.0, 0.08, 0.081], [False, True, True]),
        ([0.0, 0.001, 0.08], [False, False, True]),
        ([0.0, 0.04, 0.08], None),
        ([0.0, 0.08], None),
        ([0.0, 0.01, 0.02], None),
        ([0.0, 0.3, -0.2, 0.12, 0.02, -0.1], None),
    ],
)
def test_few_sessions_are_split_at_a_gap_that_noise_does_not_explain(
    sessions: list[float], split: list[bool] | None
) -> None:
    mask = splits_by_gap([np.array(sessions)], [0.035], [0.03])[0]
    assert (None if mask is None else mask.tolist()) == split


def test_a_candidate_of_the_slow_kind_proves_nothing_and_is_named() -> None:
    row = judge(of_kinds(KINDS), of_kinds("11111111", seed=2))
    assert row.decision is Decision.UNDECIDED
    assert row.baseline_levels is not None
    assert (row.baseline_levels.low_count, row.baseline_levels.high_count) == (9, 7)
    assert row.baseline_levels.low == pytest.approx(0.2, rel=0.01)
    assert row.baseline_levels.high == pytest.approx(0.23, rel=0.01)
    assert "two kinds of sessions, 15" in row.reason
    assert row.sessions_needed is None, "no number of sessions decides it"


def test_a_candidate_of_the_fast_kind_is_within_and_one_worse_than_the_slow_kind_regresses() -> None:
    assert judge(of_kinds(KINDS), of_kinds("00000000", seed=2)).decision is Decision.WITHIN
    assert judge(of_kinds(KINDS), of_kinds("11111111", seed=2) + 0.10).decision is Decision.REGRESSED
    assert judge(of_kinds(KINDS), of_kinds("00000000", seed=2) - 0.20).decision is Decision.IMPROVED


@pytest.mark.parametrize("gap", [0.15, 0.30, 0.53])
def test_forty_per_cent_are_found_in_kinds_that_lie_farther_apart_too(gap: float) -> None:
    """Each kind against its own, where the faster one of now lies below the slower one of before."""
    row = judge(of_kinds(KINDS, gap), of_kinds("11011100", gap, seed=2) + math.log(1.4))
    assert row.decision is Decision.REGRESSED
    assert judge(of_kinds(KINDS, gap), of_kinds("11011100", gap, seed=2)).decision is not Decision.REGRESSED


def test_a_slower_share_of_kinds_is_no_kind_that_got_slower() -> None:
    """The slow kind and one bad session: each group is worse than the group before, and nothing has changed."""
    candidate = np.append(of_kinds("111", seed=2), [0.55, 0.56])
    assert judge(of_kinds(KINDS), candidate).decision is not Decision.REGRESSED


def test_a_candidate_of_two_kinds_is_not_convicted_by_its_slow_ones() -> None:
    row = judge(of_kinds("00000000"), np.array([0.0, 0.08, 0.083]), tolerance=0.05)
    assert row.decision is Decision.UNDECIDED
    assert row.candidate_levels is not None
    assert (row.candidate_levels.low_count, row.candidate_levels.high_count) == (1, 2)
    assert "two kinds" in row.reason


def test_slow_sessions_that_come_far_more_often_are_a_regression() -> None:
    """None of 20 before, seven of eight now: the share itself is proven to have changed."""
    row = judge(of_kinds("0" * 20), of_kinds("11101111", gap=0.2, seed=2))
    assert row.decision is Decision.REGRESSED


def test_a_single_bad_session_of_the_candidate_is_no_kind() -> None:
    row = judge(of_kinds("00000000"), np.array([0.2, 0.201, 0.6]))
    assert row.decision is Decision.REGRESSED
    assert row.candidate_levels is None


def test_one_baseline_session_like_the_candidate_leaves_few_sessions_undecided() -> None:
    baseline = of_kinds("00010000", gap=0.08)
    assert judge(baseline, of_kinds("111", gap=0.08, seed=2), tolerance=0.05).decision is Decision.UNDECIDED
    other = of_kinds("00010000", gap=0.30)
    assert judge(other, of_kinds("111", gap=0.08, seed=2), tolerance=0.05).decision is Decision.REGRESSED
    many = of_kinds("0" * 19 + "1" + "0" * 12, gap=0.08)
    assert judge(many, of_kinds("1" * 8, gap=0.08, seed=2), tolerance=0.05).decision is Decision.REGRESSED


@pytest.mark.parametrize(
    ("before", "now"), [("0001000010000000", "00000001"), ("0011000100000100", "00010100"), (KINDS, "11011100")]
)
def test_a_change_as_large_as_the_distance_of_the_kinds_is_found(before: str, now: str) -> None:
    """C045: the faster kind of now stands where the slower one of before did."""
    row = judge(of_kinds(before, 0.4), of_kinds(now, 0.4, seed=2) + math.log(1.4))
    assert row.decision is Decision.REGRESSED
    assert judge(of_kinds(before, 0.4), of_kinds(now, 0.4, seed=2)).decision is not Decision.REGRESSED


def test_three_kinds_that_all_got_slower_are_found() -> None:
    three = np.array([0.0, 0.223, 0.405])
    before, now = np.tile(three, 6), np.tile(three, 3) + math.log(1.4)
    noise = np.random.default_rng(5).normal(0.0, 0.005, before.size)
    assert judge(before + noise, now + noise[: now.size]).decision is Decision.REGRESSED
    assert judge(before + noise, now + noise[: now.size] - math.log(1.4)).decision is not Decision.REGRESSED


def test_what_is_slower_as_a_whole_and_hardly_against_the_worse_kind_is_no_pass() -> None:
    """C045: proven to be worse than the worse kind, by less than fails, while the row says a size that fails."""
    row = judge(of_kinds(KINDS), of_kinds("11111111", seed=2) + 0.02)
    assert row.decision is Decision.UNDECIDED
    assert "two kinds of sessions, 15" in row.reason
    assert row.sessions_needed is None
    many = judge(of_kinds("0000000100000001", gap=0.3), of_kinds("11111111", gap=0.3, seed=2))
    assert many.decision is Decision.REGRESSED, "two of 16 before, all of eight now: the share itself has changed"


@pytest.mark.parametrize("seed", range(12))
def test_an_unchanged_candidate_after_a_slow_down_one_session_ago_is_no_regression(seed: int) -> None:
    """The newest session is a sample of its level, and may stand some deviations off it."""
    rng = np.random.default_rng(seed)
    newest = 0.22 + (0.008 if seed % 2 else -0.008)
    baseline = np.append(rng.normal(0.0, 0.006, 15), newest)
    assert judge(baseline, 0.22 + rng.normal(0.0, 0.006, 8)).decision is not Decision.REGRESSED
    assert judge(baseline, 0.30 + rng.normal(0.0, 0.006, 8)).decision is Decision.REGRESSED


SPED_UP = np.append(np.random.default_rng(8).normal(0.0, 0.006, 18), [-0.222, -0.226])


@pytest.mark.parametrize(
    ("against_newest", "decision"),
    [
        (0.08, Decision.UNDECIDED),
        (0.22, Decision.UNDECIDED),  # back at the old level
        (0.0, Decision.WITHIN),
        (0.35, Decision.REGRESSED),
        (-0.12, Decision.IMPROVED),
    ],
)
def test_after_a_speed_up_two_sessions_ago_the_newest_level_counts(against_newest: float, decision: Decision) -> None:
    candidate = -0.224 + against_newest + np.array([0.002, -0.004, 0.001, 0.003, -0.002])
    row = judge(SPED_UP, candidate)
    assert row.decision is decision
    assert row.baseline_levels is not None
    assert row.baseline_levels.newest == 2
    assert row.baseline_levels.against_low == pytest.approx(math.exp(against_newest), rel=0.01)
    if decision is Decision.UNDECIDED:
        assert "-20.1 % to the 18 before; against the newest it is" in row.reason
        assert row.baseline_needed == 1


def test_after_a_slow_down_two_sessions_ago_an_unchanged_candidate_is_no_regression() -> None:
    slowed = np.append(SPED_UP[:18], [0.20, 0.204])
    assert judge(slowed, 0.2 + np.array([0.0, 0.004, -0.002, 0.001, 0.003])).decision is Decision.UNDECIDED
    assert judge(slowed, np.array([0.0, 0.004, -0.002, 0.001, 0.003])).decision is Decision.WITHIN


def test_the_newest_session_alone_hides_nothing_either() -> None:
    faster = np.append(SPED_UP[:19], -0.0)[:19]
    row = judge(faster, -0.222 + 0.08 + np.array([0.002, -0.004, 0.001, 0.003, -0.002]))
    assert row.decision is Decision.UNDECIDED
    assert row.baseline_needed == 2


def test_higher_is_better_mirrors_all_of_it() -> None:
    for baseline, candidate in (
        (of_kinds(KINDS), of_kinds("11111111", seed=2)),
        (of_kinds(KINDS), of_kinds("11111111", seed=2) + 0.10),
        (of_kinds(KINDS), of_kinds("00000000", seed=2) - 0.20),
        (SPED_UP, -0.144 + np.array([0.002, -0.004, 0.001])),
    ):
        latency = StoredComparison("a", "a", values(baseline), values(candidate), 0.10)
        rate = replace(latency, baseline=values(-baseline), candidate=values(-candidate), higher_is_better=True)
        rows = [compare_stored([one]).rows[0] for one in (latency, rate)]
        assert rows[0].decision is rows[1].decision
        assert rows[0].p == pytest.approx(rows[1].p)
        levels = [one.baseline_levels for one in rows if one.baseline_levels is not None]
        assert (levels[0].low_count, levels[0].high_count) == (levels[1].high_count, levels[1].low_count)
