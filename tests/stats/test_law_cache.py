"""The law of the prefix cache: faster, off, useless, slower, and a control that gives a false proof away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.stats import laws
from phasegate.stats.outcome import LawResult, Outcome
from tests.stats.sessions import noisy, ttft


def _judge(saving: float, *, control: float = 0.0, cv: float = 0.006, seed: int = 1, **options: Any) -> LawResult:
    cold, cached, fresh = noisy([0.5, 0.5 * (1 - saving), 0.5 * (1 - control)], cv, seed).T
    return laws.cached_faster(cold, cached, fresh, **options)


def test_a_working_cache_passes_and_tells_its_saving_and_evidence() -> None:
    """90 % saved, 500 tokens reported."""
    result = _judge(0.9, cached_tokens=[500] * 8)
    assert result.outcome is Outcome.PASS
    assert result.effect == pytest.approx(0.9, abs=0.01)
    assert "median of cached tokens 500" in result.reason
    assert not result.detail


def test_a_server_that_reports_no_cached_tokens_can_still_pass_by_time() -> None:
    """None is "not reported", which is no evidence either way."""
    result = _judge(0.9, cached_tokens=[None] * 8)
    assert result.outcome is Outcome.PASS
    assert "not reported" in result.reason


@pytest.mark.parametrize("reported", [None, 0])
def test_with_caching_off_the_law_fails_and_says_so(reported: int | None) -> None:
    """No saving, and nothing reported or zero reported."""
    result = _judge(0.0, cached_tokens=[reported] * 8)
    assert (result.outcome, result.detail) == (Outcome.FAIL, "cache_off")
    assert "caching is off" in result.reason


@pytest.mark.parametrize("reported", [None, 0])
def test_a_miss_that_was_known_beforehand_is_told_and_is_no_failure(reported: int | None) -> None:
    """Nothing is claimed of the server, and more requests would not help."""
    result = _judge(0.0, cached_tokens=[reported] * 8, known_miss="nothing is marked: mark it")
    assert (result.outcome, result.detail, result.needed) == (Outcome.INCONCLUSIVE, "known_miss", None)
    assert result.reason.endswith("nothing is marked: mark it")


def test_a_known_miss_is_told_of_few_blocks_too_where_more_would_miss_as_well() -> None:
    """But a hit among them asks for more."""
    told, hit = (
        laws.cached_faster([0.5] * 3, [0.5] * 3, [0.5] * 3, cached_tokens=[count] * 3, known_miss="mark it")
        for count in (0, 500)
    )
    assert (told.detail, told.needed) == ("known_miss", None)
    assert told.reason == "3 complete blocks are too few to judge; median of cached tokens 0; mark it"
    assert (hit.detail, hit.needed) == ("", 2)


@pytest.mark.parametrize(
    ("saving", "cached", "detail"),
    [(0.9, 500, ""), (0.0, 500, "no_saving"), (-0.5, 0, "slower"), (0.9, 0, "contradiction"), (0.9, None, "")],
)
def test_what_was_known_beforehand_excuses_a_miss_and_nothing_else(
    saving: float, cached: int | None, detail: str
) -> None:
    """A hit after all, or a second call that is slower, is judged as ever."""
    result = _judge(saving, cached_tokens=[cached] * 8, known_miss="nothing is marked: mark it")
    assert result == _judge(saving, cached_tokens=[cached] * 8)
    assert result.detail == detail


def test_a_hit_that_saves_nothing_is_told_from_a_cache_that_is_off() -> None:
    """The server reports 500 cached tokens, time says otherwise."""
    assert _judge(0.0, cached_tokens=[500] * 8).detail == "no_saving"


def test_a_cache_that_is_slower_fails() -> None:
    """1.5 times slower, whatever is reported."""
    for reported in (None, 0, 500):
        result = _judge(-0.5, cached_tokens=[reported] * 8)
        assert (result.outcome, result.detail) == (Outcome.FAIL, "slower")


def test_a_fresh_prompt_that_is_as_fast_gives_the_proof_away() -> None:
    """When the control is fast too, it was not the prefix that helped."""
    result = _judge(0.5, control=0.5, cached_tokens=[500] * 8)
    assert (result.outcome, result.detail) == (Outcome.FAIL, "control_faster")


def test_faster_with_zero_reported_is_a_contradiction_that_more_requests_do_not_solve() -> None:
    """Undecided, and asks for no more data."""
    result = _judge(0.9, cached_tokens=[0] * 8)
    assert (result.outcome, result.detail, result.needed) == (Outcome.INCONCLUSIVE, "contradiction", None)


def test_missed_hits_are_warned_of() -> None:
    """Two of eight second calls were no hit."""
    assert _judge(0.9, cached_tokens=[500] * 6 + [0] * 2).warnings == (
        "2 of 8 second calls missed the cache; give the server a larger cache",
    )


def test_a_saving_near_the_least_material_one_is_undecided() -> None:
    """20 % under 10 % of noise."""
    result = _judge(0.21, cv=0.10)
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed


def test_one_disturbed_call_changes_nothing() -> None:
    """Each call in turn is four times slower."""
    table = ttft([0.5, 0.05, 0.5])
    for cell in np.ndindex(*table.shape):
        disturbed = table.copy()
        disturbed[cell] *= 4
        assert laws.cached_faster(*disturbed.T).outcome is Outcome.PASS


@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 1000), saving=st.sampled_from([0.9, 0.2, 0.0, -0.5]))
@settings(deadline=None, max_examples=60)
def test_neither_the_unit_nor_the_order_of_blocks_matters(scale: float, seed: int, saving: float) -> None:
    """Same word with all times multiplied and blocks shuffled."""
    table = noisy([0.5, 0.5 * (1 - saving), 0.5], 0.02, seed)
    shuffled = np.random.default_rng(seed).permutation(table) * scale
    plain, changed = laws.cached_faster(*table.T), laws.cached_faster(*shuffled.T)
    assert (changed.outcome, changed.detail) == (plain.outcome, plain.detail)
    assert plain.effect is not None
    assert changed.effect == pytest.approx(plain.effect, abs=1e-9)


def test_few_blocks_are_not_judged_and_unpaired_columns_are_refused() -> None:
    """Three blocks ask for two more; columns of different length are named."""
    few = laws.cached_faster([0.5] * 3, [0.05] * 3, [0.5] * 3)
    assert (few.outcome, few.needed) == (Outcome.INCONCLUSIVE, 2)
    with pytest.raises(ValueError, match=r"\[5, 4, 5\]"):
        laws.cached_faster([0.5] * 5, [0.05] * 4, [0.5] * 5)
