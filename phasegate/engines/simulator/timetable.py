"""The models of time by name, one shared loop or a loop for every request, and `simulate`: the truth in one call."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

from phasegate.engines.simulator.chance import SessionEffect, session_effect
from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.model import NEVER, Arrival, Course, Departure, Scheduler
from phasegate.engines.simulator.pools import TwoPools
from phasegate.engines.simulator.prefix_cache import PrefixCache


class Timetable(Protocol):
    """What the server needs of a model of time."""

    @property
    def running(self) -> int:
        """Requests that the engine works on."""

    @property
    def waiting(self) -> int:
        """Requests that have arrived and not begun."""

    @property
    def kv_tokens(self) -> int:
        """Tokens in the KV memory."""

    @property
    def decoded(self) -> tuple[int, int]:
        """Steps in which any request decoded, since the start, and the requests that did, added up over them."""

    def arrive(self, arrival: Arrival) -> Course:
        """Take a request; arrivals come in the order of their moments."""

    def abort(self, number: int, at: float) -> list[Departure]:
        """Forget a request that its client gave up; returns what left until then, of any request."""

    def advance(self, to: float) -> list[Departure]:
        """Everything decided by that moment and not told before, in order of decision."""

    def next_at(self) -> float:
        """The next moment at which something will be decided, or `NEVER`."""


class LoopForEach:
    """A loop of its own for every request, which therefore knows nothing of the others but the prefix cache."""

    def __init__(self, config: SimulatorConfig, cache: PrefixCache, session: SessionEffect) -> None:
        self._config = config
        self._cache = cache
        self._session = session
        self._loops: dict[int, Scheduler] = {}
        self._next: list[tuple[float, int]] = []
        self._ended = (0, 0)

    @property
    def running(self) -> int:
        """See `Timetable`."""
        return len(self._loops)

    @property
    def waiting(self) -> int:
        """See `Timetable`: nobody ever waits."""
        return 0

    @property
    def kv_tokens(self) -> int:
        """See `Timetable`."""
        return sum(loop.kv_tokens for loop in self._loops.values())

    @property
    def decoded(self) -> tuple[int, int]:
        """See `Timetable`."""
        counts = [self._ended, *(loop.decoded for loop in self._loops.values())]
        return sum(steps for steps, _ in counts), sum(streams for _, streams in counts)

    def arrive(self, arrival: Arrival) -> Course:
        """See `Timetable`."""
        loop = self._loops[arrival.number] = Scheduler(self._config, self._cache, self._session)
        course = loop.arrive(arrival)
        heapq.heappush(self._next, (loop.next_at(), arrival.number))
        return course

    def abort(self, number: int, at: float) -> list[Departure]:
        """See `Timetable`."""
        left = self.advance(at)
        if number in self._loops:
            self._end(number)
        return left

    def next_at(self) -> float:
        """See `Timetable`."""
        while self._next and self._next[0][1] not in self._loops:
            heapq.heappop(self._next)
        return self._next[0][0] if self._next else NEVER

    def advance(self, to: float) -> list[Departure]:
        """See `Timetable`."""
        left: list[Departure] = []
        while self.next_at() <= to:
            at, number = heapq.heappop(self._next)
            loop = self._loops[number]
            left += loop.advance(at)
            if loop.next_at() < NEVER:
                heapq.heappush(self._next, (loop.next_at(), number))
            else:
                self._end(number)
        return left

    def _end(self, number: int) -> None:
        steps, streams = self._loops.pop(number).decoded
        self._ended = self._ended[0] + steps, self._ended[1] + streams


def timetable_for(config: SimulatorConfig, cache: PrefixCache | None = None) -> Timetable:
    """The model of time that the settings ask for, with a prefix cache of its own where none is given."""
    cache = cache or PrefixCache(config.cache_block_tokens, config.cache_capacity_tokens)
    session = session_effect(config)
    if config.batching is Batching.ALONE:
        return LoopForEach(config, cache, session)
    if config.disaggregated:
        return TwoPools(config, cache, session)
    return Scheduler(config, cache, session)


def simulate(config: SimulatorConfig, arrivals: Sequence[Arrival]) -> dict[int, list[Departure]]:
    """When every chunk of every answer leaves, by request number: the truth that a measurement should find."""
    timetable = timetable_for(config)
    for arrival in sorted(arrivals, key=lambda arrival: (arrival.at, arrival.number)):
        timetable.arrive(arrival)
    left: dict[int, list[Departure]] = {arrival.number: [] for arrival in arrivals}
    while timetable.next_at() < NEVER:
        for departure in timetable.advance(timetable.next_at()):
            left[departure.number].append(departure)
    return left
