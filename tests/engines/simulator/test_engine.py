"""The simulator as the suite's engine: sessions, changes of settings, truth, and no process left over."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from phasegate.engines.base import Engine, EngineError
from phasegate.engines.simulator.config import CacheMode, SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.process import SimulatorProcessError
from tests.engines.simulator.client import chat, send

CONFIG = SimulatorConfig(speed=50, session_decode_cv=0.1)


@pytest.fixture
def engine() -> Iterator[SimulatorEngine]:
    """A started simulator."""
    with SimulatorEngine(CONFIG) as started:
        yield started


def _planned_tpot(engine: SimulatorEngine) -> float:
    """Seconds per token that the engine planned for one answer, session effect included."""
    engine.reset_truths()
    send(engine.address, chat(max_tokens=50))
    (truth,) = engine.truths()
    return (truth.chunks[-1].planned - truth.chunks[0].planned) / 49 * CONFIG.speed


def test_a_restart_is_a_new_session(engine: SimulatorEngine) -> None:
    """Another session effect; the same number again gives the same one."""
    first = _planned_tpot(engine)
    engine.restart()
    assert engine.config.session == 1
    second = _planned_tpot(engine)
    engine.reconfigure(session=0)
    assert _planned_tpot(engine) == pytest.approx(first, rel=1e-6) != second


def test_settings_can_be_changed_between_measurements(engine: SimulatorEngine) -> None:
    """The cache goes off, and the second call tells."""
    body = chat(words=100)
    send(engine.address, body)
    assert send(engine.address, body).usage["prompt_tokens_details"]["cached_tokens"] > 0
    engine.reconfigure(cache=CacheMode.OFF)
    send(engine.address, body)
    assert send(engine.address, body).usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_wrong_change_leaves_the_engine_running(engine: SimulatorEngine) -> None:
    """The mistake is told before anything stops."""
    with pytest.raises(SimulatorConfigError):
        engine.reconfigure(speed=-1)
    assert engine.running
    assert send(engine.address, chat()).status == 200


def test_the_cache_can_be_emptied(engine: SimulatorEngine) -> None:
    """Between two equal prompts."""
    body = chat(words=100)
    send(engine.address, body)
    assert engine.reset_prefix_cache()
    assert send(engine.address, body).usage["prompt_tokens_details"]["cached_tokens"] == 0


def test_it_counts_words(engine: SimulatorEngine) -> None:
    """A word is a token."""
    assert engine.tokenize("one two  three\nfour") == 4


def test_stopping_leaves_no_process_and_can_be_done_twice() -> None:
    """Whatever was under way."""
    engine = SimulatorEngine(CONFIG)
    before = set(psutil.Process().children())
    engine.start()
    started = set(psutil.Process().children()) - before
    assert len(started) == 1
    engine.stop()
    engine.stop()
    assert not engine.running
    assert not any(process.is_running() for process in started)


def test_an_engine_that_is_not_started_says_so() -> None:
    """One line."""
    with pytest.raises(SimulatorProcessError, match="not started"):
        SimulatorEngine(CONFIG).base_url  # noqa: B018


def test_the_key_is_not_in_the_repr() -> None:
    """Nor in that of its settings."""
    engine = SimulatorEngine(CONFIG, api_key="not-a-real-key")
    assert "not-a-real-key" not in repr(engine) + repr(vars(engine)["config"])


def test_it_is_an_engine_of_the_suite(engine: SimulatorEngine) -> None:
    """By the suite's own definition, for the type checker and at run time."""
    as_engine: Engine = engine
    assert isinstance(as_engine, Engine)


def test_it_says_what_it_is(engine: SimulatorEngine) -> None:
    """A planted slowdown does not change its identity, a chosen setting does."""
    plain = engine.identity()
    assert (plain.engine, plain.model, plain.hardware) == ("phasegate-simulator", "simulated", "simulated")
    engine.reconfigure(prefill_factor=1.5)
    assert engine.identity() == plain
    engine.reconfigure(max_sequences=2)
    assert engine.identity().settings != plain.settings


def test_settings_come_as_words_too() -> None:
    """And a mistake in them is an error of the engine."""
    assert SimulatorEngine.from_words("decode_factor=1.5 cache=off").config.decode_factor == 1.5
    with pytest.raises(EngineError, match="did you mean 'cache'"):
        SimulatorEngine.from_words("cahce=off")
