"""How many streams share a step of the engine, by its own count, against how many were sent at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from phasegate.engines.base import Engine
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.metrics.page import MetricsPages
from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.model import NEVER, Arrival
from phasegate.engines.simulator.timetable import timetable_for
from phasegate.stats.counters import counted_between
from tests.engines.completions import complete

pytest.importorskip("prometheus_client")


def streams_per_step(engine: Engine, name: str, at_a_time: int, ask: Callable[[int], object]) -> float | None:
    """By the server's page, over two requests of each of so many users."""
    door = MetricsPages(engine.base_url, name)
    before = door.read().readings
    with ThreadPoolExecutor(at_a_time) as pool:
        list(pool.map(ask, range(2 * at_a_time)))
    return counted_between(before, door.read().readings).streams_per_step


@pytest.mark.engine
def test_the_real_engine_counts_as_many_streams_as_were_sent_at_a_time(engine: EmbeddedEngine) -> None:
    """One, and four less what the ends of the answers leave open; a mean since its start would be neither."""

    def ask(number: int) -> object:
        return complete(engine, "".join(f" {word}" for word in engine.words[50 * number : 50 * number + 20]), 16)

    assert streams_per_step(engine, "llama.cpp", 1, ask) == pytest.approx(1.0, abs=0.15)
    four = streams_per_step(engine, "llama.cpp", 4, ask)
    assert four is not None
    assert 2.5 < four <= 4.0


@pytest.mark.parametrize(("slots", "least", "most"), [(1, 1.0, 1.0), (16, 2.0, 4.0)])
def test_the_simulators_page_tells_one_after_another_from_together(slots: int, least: float, most: float) -> None:
    """The same four users, with one slot and with enough of them."""
    with SimulatorEngine(SimulatorConfig(seed=1, max_sequences=slots)) as engine:
        found = streams_per_step(engine, "phasegate-simulator", 4, lambda number: complete(engine, f"w{number}", 32))
    assert found is not None
    assert least <= found <= most


@pytest.mark.parametrize(
    ("settings", "steps", "streams"),
    [
        ({}, 9, 27),
        ({"disaggregated": True}, 9, 27),
        ({"batching": Batching.ALONE}, 27, 27),
        ({"max_sequences": 1}, 27, 27),
    ],
)
def test_the_model_of_time_counts_its_steps(settings: dict[str, object], steps: int, streams: int) -> None:
    """Three requests at one moment, ten tokens each, the first of which comes with the prompt."""
    config = SimulatorConfig(seed=1).changed(**settings)
    timetable = timetable_for(config)
    for number in (1, 2, 3):
        timetable.arrive(Arrival(number, 0.0, prompt_tokens=8, output_tokens=10))
    while (at := timetable.next_at()) < NEVER:
        timetable.advance(at)
    assert timetable.decoded == (steps, streams)
