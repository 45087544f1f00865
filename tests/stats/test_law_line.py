"""The law of the straight line: it passes a line, and fails a step, a bend, a false start and a false slope."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.stats import laws
from phasegate.stats.outcome import LawResult, Outcome
from tests.stats.sessions import OUTPUTS, Table, tpot, ttft

GAPS = np.array(OUTPUTS) - 1


def _judge(added: Table | None = None, *, scale: float = 1.0, seed: int = 3) -> LawResult:
    """A healthy session with seconds added to the totals, per level."""
    first, each = ttft([0.13] * 4, seed), tpot([0.007] * 4, seed + 1)
    totals = first + each * GAPS + (0 if added is None else added)
    each = (totals - first) / GAPS
    return laws.linear(OUTPUTS, totals * scale, ttft=first * scale, tpot=each * scale)


def test_a_healthy_session_is_a_line_that_starts_at_ttft_and_climbs_by_tpot() -> None:
    """The reason names the start, the slope and the largest step."""
    result = _judge()
    assert result.outcome is Outcome.PASS
    assert result.needed is None
    for words in ("largest step", "from TTFT", "from TPOT"):
        assert words in result.reason


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_step_fails_wherever_it_stands(place: int) -> None:
    """Half a second more from any length on, and the reason says between which lengths."""
    result = _judge(np.where(np.arange(4) >= place, 0.5, 0.0))
    assert result.outcome is Outcome.FAIL
    assert f"between {OUTPUTS[place - 1]} and {OUTPUTS[place]} tokens" in result.reason


def test_a_tpot_that_doubles_over_the_answer_is_a_bend_and_fails() -> None:
    """Each token costs more than the one before: total has a square in it."""
    assert _judge(0.007 * GAPS**2 / 256).outcome is Outcome.FAIL


def test_totals_that_start_above_ttft_fail() -> None:
    """Totals with 60 ms that are in no TTFT: a straight line with a false start."""
    first, each = ttft([0.13] * 4), tpot([0.007] * 4)
    result = laws.linear(OUTPUTS, first + each * GAPS + 0.06, ttft=first, tpot=each)
    assert result.outcome is Outcome.FAIL
    assert "from TTFT, surely beyond" in result.reason


def test_totals_that_climb_faster_than_tpot_fail() -> None:
    """Totals with 30 % more per token than TPOT says."""
    first, each = ttft([0.13] * 4), tpot([0.007] * 4)
    result = laws.linear(OUTPUTS, first + 1.3 * each * GAPS, ttft=first, tpot=each)
    assert result.outcome is Outcome.FAIL
    assert "from TPOT, surely beyond" in result.reason


def test_n_tokens_have_one_gap_less() -> None:
    """Without noise the line at N = 1 is TTFT to the last digit; counting N gaps would miss it by one TPOT."""
    first, each = np.full((5, 4), 0.13), np.full((5, 4), 0.007)
    result = laws.linear(OUTPUTS, first + each * GAPS, ttft=first, tpot=each)
    assert "starts at 130 ms, +0.0 %" in result.reason.replace("-0.0 %", "+0.0 %")


def test_an_intercept_off_by_less_than_two_tokens_is_immaterial() -> None:
    """TTFT of 10 ms against 7 ms a token: 10 ms more at the start cannot be told from two tokens' time."""
    first, each = ttft([0.010] * 4), tpot([0.007] * 4)
    assert laws.linear(OUTPUTS, first + each * GAPS + 0.005, ttft=first, tpot=each).outcome is Outcome.PASS


@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_the_unit_of_time_does_not_matter(scale: float, seed: int) -> None:
    """Same word and same effect with all times multiplied."""
    plain, scaled = _judge(seed=seed), _judge(seed=seed, scale=scale)
    assert scaled.outcome is plain.outcome
    assert plain.effect is not None
    assert scaled.effect == pytest.approx(plain.effect, abs=1e-9)


def test_few_blocks_are_not_judged_and_tables_must_match() -> None:
    """Four blocks are too few; eight totals against six TPOTs is the caller's mistake, named."""
    first, each = ttft([0.13] * 4), tpot([0.007] * 4)
    totals = first + each * GAPS
    few = laws.linear(OUTPUTS, totals[:4], ttft=first[:4], tpot=each[:4])
    assert (few.outcome, few.needed) == (Outcome.INCONCLUSIVE, 1)
    with pytest.raises(ValueError, match=r"\[8, 8, 6\] blocks"):
        laws.linear(OUTPUTS, totals, ttft=first, tpot=each[:6])
    with pytest.raises(ValueError, match="at least 3"):
        laws.linear(OUTPUTS[:2], totals[:, :2], ttft=first[:, :2], tpot=each[:, :2])
