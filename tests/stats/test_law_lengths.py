"""The laws over lengths: rising, flat, bounded slope. Each is shown passing, failing and undecided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.stats import laws
from phasegate.stats.outcome import LawResult, Outcome
from tests.stats.sessions import OUTPUTS, PROMPTS, Table, noisy, tpot, ttft

PREFILL = [0.067, 0.259, 0.515, 1.027]

JUDGES: dict[str, Callable[[list[int], Table], LawResult]] = {
    "rises": lambda levels, table: laws.rises(levels, table),
    "flat": lambda levels, table: laws.flat(levels, table, margin=0.10),
    "bounded_slope": lambda levels, table: laws.bounded_slope(levels, table),
}


def test_ttft_that_grows_by_a_millisecond_a_token_rises_and_tells_its_slope() -> None:
    """The planted slope, one second per 1,000 tokens, lies in a narrow interval."""
    result = laws.rises(PROMPTS, ttft(PREFILL), law="TTFT rises")
    assert result.outcome is Outcome.PASS
    assert result.effect == pytest.approx(1.0, rel=0.01)
    assert result.low is not None
    assert result.high is not None
    assert 0.98 < result.low < result.high < 1.02
    assert (result.unit, result.n, result.needed) == ("s per 1,000 tokens", 8, None)
    assert "tokens/s" in result.reason


def test_a_constant_ttft_fails_the_rise_and_is_not_merely_undecided() -> None:
    """A material rise is excluded, and the reason names what would count."""
    result = laws.rises(PROMPTS, ttft([0.3] * 4))
    assert result.outcome is Outcome.FAIL
    assert "a rise counts from 10.0 %" in result.reason


def test_a_falling_ttft_fails_the_rise() -> None:
    """The law is one-sided."""
    assert laws.rises(PROMPTS, ttft(PREFILL[::-1])).outcome is Outcome.FAIL


def test_a_rise_near_the_least_material_one_is_undecided_and_asks_for_more() -> None:
    """Ten percent of rise under noise that cannot tell ten from twelve."""
    result = laws.rises(PROMPTS, noisy([0.3, 0.31, 0.32, 0.333], 0.05))
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed is not None
    assert result.needed > 1
    assert f"measure {result.needed} more repetitions" in result.reason


def test_a_rise_from_end_to_end_that_no_trend_carries_is_not_passed() -> None:
    """TTFT that falls over three lengths and jumps at the last is no trend by rank."""
    result = laws.rises(PROMPTS, ttft([0.4, 0.35, 0.3, 0.5], blocks=5))
    assert result.outcome is Outcome.INCONCLUSIVE


def test_two_lengths_are_enough_for_a_rise() -> None:
    """With two levels the trend test is the sign test."""
    assert laws.rises([64, 1024], ttft([0.07, 1.0])).outcome is Outcome.PASS


def test_a_flat_tpot_passes_as_equivalent() -> None:
    """Within the margin for every pair of lengths."""
    result = laws.flat(OUTPUTS, tpot([0.007] * 4), margin=laws.TPOT_FLAT_MARGIN)
    assert result.outcome is Outcome.PASS
    assert result.low is not None
    assert result.high is not None
    assert -laws.TPOT_FLAT_MARGIN < result.low <= result.high < laws.TPOT_FLAT_MARGIN


@pytest.mark.parametrize("place", range(4))
def test_one_length_that_differs_fails_flatness_wherever_it_stands(place: int) -> None:
    """30 % more at any one length."""
    shape = [0.007] * 4
    shape[place] *= 1.3
    result = laws.flat(OUTPUTS, tpot(shape), margin=laws.TPOT_FLAT_MARGIN)
    assert result.outcome is Outcome.FAIL
    assert f"{OUTPUTS[place]}" in result.reason


def test_too_noisy_for_the_margin_is_undecided_and_never_flat() -> None:
    """Not finding a difference is no proof that there is none: 30 % noise, 8 blocks."""
    result = laws.flat(OUTPUTS, noisy([0.007] * 4, 0.3), margin=0.10)
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed


def test_what_is_asked_for_decides() -> None:
    """With the number of blocks that an undecided result asks for, most sessions are decided (seeds 0 to 39)."""
    decided = asked = 0
    for seed in range(40):
        first = laws.flat(OUTPUTS, noisy([0.007] * 4, 0.07, seed), margin=0.10)
        if first.outcome is Outcome.INCONCLUSIVE and first.needed is not None:
            asked += 1
            more = noisy([0.007] * 4, 0.07, seed, 8 + first.needed)
            decided += laws.flat(OUTPUTS, more, margin=0.10).outcome is not Outcome.INCONCLUSIVE
    assert asked >= 20
    assert decided / asked > 0.8


def test_a_small_slope_is_within_its_bound_and_a_large_one_is_not() -> None:
    """2 % and 30 % per 1,000 tokens against the default."""
    lengths = np.array(PROMPTS)
    small, large = ((0.007 * (1 + s * (lengths - 64) / 1000)).tolist() for s in (0.02, 0.30))
    assert laws.bounded_slope(PROMPTS, tpot(small)).outcome is Outcome.PASS
    failed = laws.bounded_slope(PROMPTS, tpot(large))
    assert failed.outcome is Outcome.FAIL
    assert failed.effect == pytest.approx(0.30, abs=0.06)


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
@pytest.mark.parametrize("blocks", [0, 1, 4])
def test_fewer_than_five_blocks_are_never_judged(judge: Callable[..., LawResult], blocks: int) -> None:
    """The result says how many are missing."""
    result = judge(OUTPUTS, ttft(PREFILL, blocks=blocks))
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed == 5 - blocks
    assert result.effect is None


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_one_request_disturbed_by_a_neighbour_changes_no_outcome(judge: Callable[..., LawResult]) -> None:
    """Each of the 32 requests in turn takes four times as long."""
    for shape in (PREFILL, [0.3] * 4):
        table = ttft(shape)
        wanted = judge(OUTPUTS, table).outcome
        for cell in np.ndindex(*table.shape):
            disturbed = table.copy()
            disturbed[cell] *= 4
            assert judge(OUTPUTS, disturbed).outcome is wanted


@given(
    scale=st.floats(1e-4, 1e4),
    seed=st.integers(0, 10_000),
    name=st.sampled_from(sorted(JUDGES)),
    shape=st.sampled_from([PREFILL, [0.3, 0.3, 0.3, 0.3], [0.3, 0.31, 0.32, 0.33]]),
)
@settings(deadline=None)
def test_neither_the_unit_nor_the_order_of_blocks_or_levels_matters(
    scale: float, seed: int, name: str, shape: list[float]
) -> None:
    """Times in another unit, blocks shuffled and columns reversed give the same word; arguments stay as they were."""
    judge, table = JUDGES[name], ttft(shape, seed)
    before = table.copy()
    plain = judge(OUTPUTS, table)
    shuffled = np.random.default_rng(seed).permutation(table) * scale
    changed = judge(OUTPUTS[::-1], shuffled[:, ::-1])
    assert changed.outcome is plain.outcome
    assert plain.effect is not None
    factor = scale if name == "rises" else 1.0
    assert changed.effect == pytest.approx(plain.effect * factor, rel=1e-6, abs=1e-9 * factor)
    assert (table == before).all()


@pytest.mark.parametrize(
    ("levels", "table", "message"),
    [
        ([1, 2], [[1.0, 2.0, 3.0]] * 5, "shape"),
        ([1, 1], [[1.0, 2.0]] * 5, "different"),
        ([1], [[1.0]] * 5, "at least 2"),
        ([1, 2], [[1.0, 0.0]] * 5, "positive"),
        ([1, 2], [[1.0, float("inf")]] * 5, "finite"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(levels: list[int], table: list[list[float]], message: str) -> None:
    """One clear line."""
    with pytest.raises(ValueError, match=message):
        laws.flat(levels, table, margin=0.1)


def test_many_disturbed_requests_are_warned_of() -> None:
    """Six of 32 requests three times slower: the result asks for a quieter machine."""
    table = ttft([0.3] * 4)
    for level in range(3):
        table[2 * level : 2 * level + 2, level] *= 3
    assert any("quieter machine" in line for line in laws.flat(OUTPUTS, table, margin=0.1).warnings)
