"""The law of the steady stream: stalls are found and placed; bursts and a single hiccup are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.stats import laws
from phasegate.stats.laws.stalls import usual_gap
from phasegate.stats.outcome import Outcome
from tests.stats.sessions import OUTPUTS


def _streams(repeats: int = 8, seed: int = 1) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [(0.007 * np.exp(0.2 * rng.standard_normal(n - 1))).tolist() for n in OUTPUTS for _ in range(repeats)]


def test_steady_streams_pass() -> None:
    """32 requests without a stall exclude a share of 20 %."""
    result = laws.no_stalls(_streams())
    assert result.outcome is Outcome.PASS
    assert (result.effect, result.n) == (0.0, 32)
    assert not result.warnings


def test_a_stall_in_every_long_answer_fails_and_its_place_is_named() -> None:
    """Half a second after token event 201 in the eight answers of 256 tokens."""
    gaps = _streams()
    for one in gaps[24:]:
        one[200] = 0.5
    gaps[27][200] = 0.6
    result = laws.no_stalls(gaps)
    assert result.outcome is Outcome.FAIL
    assert "longest gap 600 ms after token event 201 of request 28" in result.reason


def test_a_single_stall_passes_with_a_warning_that_names_it() -> None:
    """A host's hiccup happens; it is told, and not blamed on the engine."""
    gaps = _streams()
    gaps[3][5] = 1.0
    result = laws.no_stalls(gaps)
    assert result.outcome is Outcome.PASS
    assert "request 4" in result.warnings[0]
    assert "1.00 s" in result.warnings[0]


def test_three_stalled_requests_of_32_are_undecided_and_ask_for_more() -> None:
    """Too many for a clean bill, too few to blame the engine."""
    gaps = _streams()
    for number in (1, 9, 30):
        gaps[number][5] = 1.0
    result = laws.no_stalls(gaps)
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed
    assert f"measure {result.needed} more requests" in result.reason


def test_few_requests_prove_nothing() -> None:
    """13 clean requests cannot exclude a share of 20 %, 14 can; none at all asks for 14."""
    assert laws.no_stalls(_streams()[:13]).needed == 1
    assert laws.no_stalls(_streams()[:14]).outcome is Outcome.PASS
    nothing = laws.no_stalls([[], []])
    assert (nothing.outcome, nothing.needed, nothing.effect) == (Outcome.INCONCLUSIVE, 14, None)


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("inside", [0.0, 0.0002])
def test_tokens_that_come_in_bursts_are_no_stalls(size: int, inside: float) -> None:
    """A slow engine that sends several tokens a step: gaps inside the burst do not make the step look long."""
    gaps = [([inside] * (size - 1) + [0.4]) * 12 for _ in range(20)]
    assert usual_gap([np.array(one) for one in gaps]) == 0.4
    assert laws.no_stalls(gaps).outcome is Outcome.PASS


def test_a_stall_among_bursts_is_found() -> None:
    """Four tokens a step, and one step of ten takes ten times as long."""
    gaps = [([0.0] * 3 + [0.04]) * 10 for _ in range(20)]
    for one in gaps:
        one[19] = 0.4
    assert laws.no_stalls(gaps).outcome is Outcome.FAIL


@given(seed=st.integers(0, 1000), stalled=st.integers(0, 32))
@settings(deadline=None, max_examples=40)
def test_the_order_of_requests_does_not_matter_and_arguments_stay(seed: int, stalled: int) -> None:
    """Same word and share for shuffled requests."""
    gaps = _streams(seed=seed)
    for one in gaps[:stalled]:
        one[-1] = 2.0
    before = [list(one) for one in gaps]
    order = np.random.default_rng(seed).permutation(len(gaps))
    plain, shuffled = laws.no_stalls(gaps), laws.no_stalls([gaps[i] for i in order])
    assert (plain.outcome, plain.effect) == (shuffled.outcome, shuffled.effect)
    assert plain.effect == stalled / 32
    assert gaps == before


def test_impossible_gaps_are_refused() -> None:
    """Time does not run backwards."""
    with pytest.raises(ValueError, match="at least 0"):
        laws.no_stalls([[0.1, -0.1]])
