"""What several streams in a step cost, and so what checking guesses costs."""

from __future__ import annotations

import pytest

from phasegate.diagnose import Level
from phasegate.diagnose.step_cost import step_cost

ALONE = Level(1, tpot=0.005, usual_gap=0.005, token_rate=200.0)
FOUR = Level(4, tpot=0.02, usual_gap=0.02, token_rate=200.0)


def test_a_step_with_four_streams_is_measured_and_never_extended() -> None:
    """Four streams at 20 ms a token: x 4; five tokens take that at least, two a third of what is added."""
    found = step_cost([ALONE, FOUR], 0.1)
    assert found is not None
    assert found.streams == pytest.approx(4)
    assert found.times == pytest.approx(4)
    assert found.of_tokens(5) == pytest.approx(4)
    assert found.of_tokens(2) == pytest.approx(2)


def test_what_each_stream_reads_of_its_own_context_is_no_cost_of_guesses() -> None:
    """Three more streams with 4 ms of context each."""
    found = step_cost([ALONE, FOUR], 0.1, own=0.004)
    assert found is not None
    assert found.times == pytest.approx((0.02 - 3 * 0.004) / 0.005)


@pytest.mark.parametrize(
    "levels",
    [
        [],
        [ALONE],
        [Level(2, tpot=0.01, token_rate=200.0), Level(4, tpot=0.02, token_rate=200.0)],
        [ALONE, Level(4, tpot=0.005, usual_gap=0.005, token_rate=200.0)],
        [ALONE, Level(4)],
    ],
)
def test_streams_that_did_not_decode_at_a_time_show_nothing(levels: list[Level]) -> None:
    """One after another, or not measured."""
    assert step_cost(levels, 0.1) is None


def test_a_load_of_long_prompts_shows_no_step_of_decode() -> None:
    """Its steps read prompts, too."""
    assert step_cost([ALONE, FOUR], 0.2) is not None
    assert step_cost([ALONE, FOUR], 0.21) is None
