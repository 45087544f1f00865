"""What levers would save, by arithmetic that a reader can redo."""

from __future__ import annotations

import pytest

from phasegate.diagnose import Ask
from phasegate.diagnose.expected import Expectation, expectations
from phasegate.diagnose.prefill_line import prefill_line

SHORT = Ask("short", 500, 8, ttft=0.12, tpot=0.01, total=0.19)
LONG = Ask("long", 2500, 101, ttft=0.52, tpot=0.01, total=1.52)
LINE = prefill_line([SHORT, LONG])


def saved(ask: Ask, **known: float | int | None) -> dict[str, Expectation]:
    """Expectations by lever."""
    return {one.lever: one for one in expectations(ask, LINE, **known)}  # type: ignore[arg-type]


def test_savings_are_the_measured_times_of_what_is_left_out() -> None:
    """0.2 ms a prompt token, 10 ms an output token, 20 ms that every request pays."""
    found = saved(LONG)
    assert found["half the prompt"].seconds == pytest.approx(1250 * 0.0002)
    assert found["half the answer"].seconds == pytest.approx(50 * 0.01)
    assert found["twice the FLOP/s, same bandwidth"].seconds == pytest.approx(2500 * 0.0002 / 2)
    assert found["twice the memory bandwidth"].seconds == pytest.approx(1.0 / 2)
    assert 0 < found["speculative decoding"].seconds < 1.0
    order = [one.seconds for one in expectations(LONG, LINE)]
    assert order == sorted(order, reverse=True)


def test_a_measured_cache_is_believed_and_an_unmeasured_one_is_a_bound() -> None:
    """TTFT with the cache where it was measured, else the shared tokens' own reading time."""
    measured = saved(LONG, shared_tokens=2000, cached=0.05)["prefix caching of 2,000 shared tokens"]
    assert measured.seconds == pytest.approx(0.47)
    assert not measured.at_most
    bound = saved(LONG, shared_tokens=2000)["prefix caching of 2,000 shared tokens"]
    assert bound.seconds == pytest.approx(0.4)
    assert bound.at_most


def test_no_lever_saves_more_than_there_is() -> None:
    """Not even with a line that is steeper than the request."""
    for one in expectations(Ask("odd", 9000, 2, ttft=0.2, tpot=0.01, total=0.21), LINE, shared_tokens=8000):
        assert 0 <= one.seconds <= 0.21


def test_unseen_reasoning_is_decode() -> None:
    """It passes before the first token, and is saved by fewer reasoning tokens, not by a shorter prompt."""
    ask = Ask("think", 500, 140, ttft=1.12, ttfo=1.12, tpot=0.01, total=1.51, reasoning_tokens=100)
    assert ask.prefill_part == pytest.approx(0.12)
    assert ask.decode_part == pytest.approx(1.39)
    found = saved(ask)
    assert found["half the reasoning"].seconds == pytest.approx(0.5)
    assert found["half the answer"].seconds == pytest.approx(0.2)
    assert found["half the prompt"].seconds <= 0.12


def test_nothing_is_expected_of_what_was_not_measured() -> None:
    """No figure, no arithmetic."""
    assert expectations(Ask("bare"), None) == []
    assert {one.phase for one in expectations(Ask("start", 100, ttft=0.1), LINE)} == {"prefill"}
