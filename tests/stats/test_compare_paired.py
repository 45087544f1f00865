"""Paired comparisons: blocks, orders, second opinions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phasegate.stats.compare_types import Decision
from phasegate.stats.paired import PairedComparison, PairedRow, block_orders, compare_paired
from phasegate.stats.paired_checks import flip_p, signed_rank_p

HOST = np.exp(np.random.default_rng(1).normal(0.0, 0.1, 8))
"""What the host does to whole blocks: ten per cent and more, on both sides alike."""

ORDERS = ("ABBA", "BAAB") * 4


def judge(ratios: list[float], *, orders: tuple[str, ...] = ORDERS, tolerance: float = 0.05) -> PairedRow:
    host = HOST[: len(ratios)]
    one = PairedComparison(
        "chat tpot", "tpot", host.tolist(), (host * ratios).tolist(), tolerance, orders=orders[: len(ratios)]
    )
    return compare_paired([one]).rows[0]


def noisy(level: float, seed: int = 2, spread: float = 0.006) -> list[float]:
    return [float(level * np.exp(one)) for one in np.random.default_rng(seed).normal(0.0, spread, 8)]


def test_what_befalls_a_whole_block_cancels() -> None:
    assert judge(noisy(1.0)).row.decision is Decision.WITHIN


def test_a_slower_candidate_regresses_and_a_faster_one_improves() -> None:
    assert judge(noisy(1.05)).row.decision is Decision.REGRESSED
    assert judge(noisy(0.9)).row.decision is Decision.IMPROVED


def test_one_bad_block_neither_alarms_nor_blinds() -> None:
    ratios = noisy(1.0)
    ratios[3] = 1.6
    assert judge(ratios).row.decision is Decision.WITHIN
    ratios = noisy(1.05)
    ratios[3] = 0.6
    assert judge(ratios).row.decision is Decision.REGRESSED


def test_one_block_decides_nothing() -> None:
    row = judge([1.5]).row
    assert row.decision is Decision.UNDECIDED
    assert "1 block cannot decide" in row.reason


def test_no_block_is_undecided() -> None:
    assert judge([]).row.decision is Decision.UNDECIDED


def test_blocks_that_are_asked_for_are_counted_in_blocks() -> None:
    row = judge(noisy(1.0, spread=0.03)).row
    assert row.decision is Decision.UNDECIDED
    assert row.sessions_needed is not None
    assert "more blocks would decide" in row.reason


def test_blocks_beyond_reason_are_not_answered_with_the_sitting_that_they_come_from() -> None:
    """26 more blocks: to compare both servers side by side is what was done."""
    row = judge(noisy(1.0, spread=0.15)).row
    assert row.decision is Decision.UNDECIDED
    assert "side by side" not in row.reason
    assert row.remedy.endswith("measure on a quieter host, send more requests a block, or widen the tolerance")
    assert row.reason.endswith(row.remedy)


def test_an_order_effect_is_reported() -> None:
    ratios = [ratio * (1.04 if order == "BAAB" else 1.0) for ratio, order in zip(noisy(1.0), ORDERS, strict=True)]
    row = judge(ratios)
    assert row.order_effect == pytest.approx(0.04, abs=0.015)
    assert any("the order matters" in line for line in row.row.warnings)
    assert not any("the order matters" in line for line in judge(noisy(1.0)).row.warnings)


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 blocks of the reference but 1 of the candidate"):
        compare_paired([PairedComparison("a", "ttft", [1.0, 1.0], [1.0], 0.1)])
    with pytest.raises(ValueError, match="neither ABBA nor BAAB"):
        compare_paired([PairedComparison("a", "ttft", [1.0], [1.0], 0.1, orders=("AABB",))])


def test_orders_are_balanced_and_follow_the_generator() -> None:
    orders = block_orders(9, np.random.default_rng(5))
    assert abs(orders.count("ABBA") - orders.count("BAAB")) == 1
    assert orders == block_orders(9, np.random.default_rng(5))
    assert len({block_orders(9, np.random.default_rng(seed)) for seed in range(20)}) > 10


def test_signed_ranks_agree_with_another_implementation() -> None:
    values = np.random.default_rng(6).normal(0.3, 1.0, 10)
    assert signed_rank_p(values) == pytest.approx(float(stats.wilcoxon(values, alternative="greater").pvalue))


def test_sign_flips_of_eight_positive_values_give_one_in_two_to_the_eighth() -> None:
    assert flip_p(np.arange(1.0, 9.0)) == 1 / 256
    assert flip_p(-np.arange(1.0, 9.0)) == 1.0
    assert flip_p(np.zeros(20)) == 1.0
    assert flip_p(np.full(20, 1.0)) < 1e-4


def test_rejections_of_heavy_tails_are_few() -> None:
    """Equal servers whose blocks differ like a t with three degrees of freedom: 40 builds of 5, no alarm."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(40):
        drawn = np.exp(0.01 * rng.standard_t(3, (5, 8)))
        rows = compare_paired(
            [
                PairedComparison(f"w{i}", "tpot", HOST.tolist(), (HOST * one).tolist(), 0.05)
                for i, one in enumerate(drawn)
            ]
        ).rows
        alarms += any(one.row.decision is Decision.REGRESSED for one in rows)
    assert alarms == 0
