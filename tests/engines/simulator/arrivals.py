"""Arrivals and readings that the tests of the simulator's model share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.model import Arrival, Departure
from phasegate.engines.simulator.prefix_cache import block_keys
from phasegate.engines.simulator.timetable import simulate

QUIET = SimulatorConfig()
"""The default engine, which has no noise."""


def arrival(number: int, *, at: float = 0.0, prompt: int = 64, output: int = 16, text: str | None = None) -> Arrival:
    """A request whose prompt nobody shares, or everybody who names the same text."""
    words = [f"{text or number}-{index}" for index in range(prompt)]
    return Arrival(number, at, prompt, output, block_keys(words, QUIET.cache_block_tokens))


def alone(config: SimulatorConfig, *, prompt: int = 64, output: int = 16) -> list[Departure]:
    """The departures of one request that has the engine to itself."""
    return simulate(config, [arrival(1, prompt=prompt, output=output)])[1]


def ttft(departures: Sequence[Departure], at: float = 0.0) -> float:
    """Seconds from the arrival to the first token."""
    return departures[0].at - at


def tpot(departures: Sequence[Departure]) -> float:
    """Seconds per token after the first chunk."""
    tokens = sum(departure.tokens for departure in departures[1:])
    return (departures[-1].at - departures[0].at) / tokens


def gaps(departures: Sequence[Departure]) -> list[float]:
    """Seconds between chunks."""
    return [after.at - before.at for before, after in itertools.pairwise(departures)]
