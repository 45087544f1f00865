"""What decode pays for a longer context, by arithmetic that a reader can redo."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.diagnose import Ask, Observations, diagnose
from phasegate.diagnose.context_cost import context_cost, context_of

SHORT = Ask("short", 500, 8, tpot=0.008 + 504 * 3e-5)
LONG = Ask("long", 2000, 64, tpot=0.008 + 2032 * 3e-5)


def test_the_context_of_a_step_is_the_prompt_and_half_of_the_answer() -> None:
    """The average over the answer."""
    assert context_of(LONG) == 2032
    assert context_of(Ask("unknown", 2000)) is None


def test_each_token_of_context_costs_what_was_planted() -> None:
    """30 us a token and step."""
    found = context_cost([SHORT, LONG])
    assert found is not None
    assert found.per_token == pytest.approx(3e-5)
    assert found.seconds(1000, 63) == pytest.approx(1.89)


@pytest.mark.parametrize(
    "asks",
    [
        [],
        [LONG],
        [LONG, Ask("the same length", 2000, 64, tpot=0.02)],
        [Ask("a", 500, 8, tpot=0.010), Ask("b", 2000, 64, tpot=0.0104)],
        [Ask("a", 500, 8, tpot=0.02), Ask("b", 2000, 64, tpot=0.01)],
        [Ask("a", 500, 8), LONG],
        [Ask("a", 279, 8, tpot=0.00047), Ask("b", 1100, 20, tpot=0.00117)],
        [Ask("a", 500, 8, tpot=0.02, usual_gap=0.01), Ask("b", 2000, 64, tpot=0.04, usual_gap=0.01)],
    ],
)
def test_nothing_is_said_of_a_tpot_that_does_not_grow_or_was_measured_once(asks: list[Ask]) -> None:
    """A twentieth may be chance, as may two late tokens among eight, or a pause that is no step."""
    assert context_cost(asks) is None


def test_a_slow_stream_that_reads_a_long_context_gets_faster_with_a_shorter_one() -> None:
    """Only where TPOT grows with the context is a shorter prompt no vain advice for decode."""
    short, long = replace(SHORT, ttft=0.04, total=0.2), replace(LONG, ttft=0.13, total=4.5)
    first = diagnose(Observations(asks=(short, long))).first
    assert first is not None
    assert first.rule == "slow-stream"
    assert any("reading the context takes 3.84 s of it" in text for text in first.evidence)
    assert first.levers[1].name.startswith("shorter prompts")
    assert not any("shorter prompts" in text for text in first.will_not_help)
    flat = diagnose(Observations(asks=(replace(short, tpot=long.tpot), long))).first
    assert flat is not None
    assert flat.rule == "slow-stream"
    assert any("shorter prompts: they end with the first token" in text for text in flat.will_not_help)
