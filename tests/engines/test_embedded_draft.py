"""Speculative decoding on the real engine: bursts, counts, and answers that do not change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phasegate.core.timeline import Timeline
from phasegate.diagnose.steps import steps_of
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.generated.vocabulary import next_word
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.session_runner import SessionRunner

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def answers(request: pytest.FixtureRequest) -> Iterator[tuple[SessionRunner, list[Timeline]]]:
    """Two answers of 24 tokens from an engine with the settings of the test."""
    with connect(EngineOptions(base_url=None, engine_config=request.param)) as runner:
        asked = runner.fresh_requests("completions", 64, 24, 2)
        yield runner, [runner.send_one(str(one.body["prompt"]), one.expected, 24) for one in asked]


@pytest.mark.parametrize("answers", ["draft_tokens=3"], indirect=True)
def test_accepted_guesses_leave_in_bursts_and_change_no_word(answers: tuple[SessionRunner, list[Timeline]]) -> None:
    """Several tokens a step, nearly all guesses right, and the words that greedy decoding foretells."""
    runner, lines = answers
    steps = steps_of(lines)
    assert steps is not None
    assert steps.tokens_per_step is not None
    assert steps.tokens_per_step > 2
    assert steps.acceptance is not None
    assert steps.acceptance > 0.9
    assert isinstance(runner.engine, EmbeddedEngine)
    following = next_word(0, runner.engine.config.spec().vocabulary)
    for line in lines:
        words = line.text.split()
        assert words[1:] == [following[word] for word in words[:-1]]
        assert line.output_tokens == len(words) == 24


@pytest.mark.parametrize("answers", ["draft_tokens=3 draft_yield=1"], indirect=True)
def test_rejected_guesses_are_counted_and_leave_one_token_a_step(answers: tuple[SessionRunner, list[Timeline]]) -> None:
    """What a draft that no longer fits looks like."""
    _, lines = answers
    steps = steps_of(lines)
    assert steps is not None
    assert steps.acceptance == 0.0
    assert steps.tokens_per_step == pytest.approx(1.0, abs=0.1)
    assert EmbeddedConfig(draft_tokens=3, draft_yield=1).settings()["draft_yield"] == 1
