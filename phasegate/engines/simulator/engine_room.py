"""The model of time in real time: tells it of arrivals, sleeps to its moments, hands departures on as they come.

There is one timer for the whole engine, not one for each answer. Moments are planned from planned moments, never
from when the timer really rang, so lateness does not add up.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field

from phasegate.engines.simulator.clock import SimulatedClock
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.delivery import Delivery
from phasegate.engines.simulator.model import NEVER, Arrival, Course, Departure
from phasegate.engines.simulator.prefix_cache import PrefixCache
from phasegate.engines.simulator.timetable import Timetable, timetable_for


@dataclass
class EngineRoom:
    """Runs the model of time for a server."""

    config: SimulatorConfig
    loop: asyncio.AbstractEventLoop
    cache: PrefixCache = field(init=False)
    timetable: Timetable = field(init=False)
    clock: SimulatedClock = field(init=False)
    _deliveries: dict[int, tuple[Delivery, Course]] = field(default_factory=dict)
    _outbox: list[tuple[float, int, int, Departure]] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self.cache = PrefixCache(self.config.cache_block_tokens, self.config.cache_capacity_tokens)
        self.timetable = timetable_for(self.config, self.cache)
        self.clock = SimulatedClock(self.loop.time(), self.config.speed)

    def start(self, arrival: Arrival, delivery: Delivery) -> None:
        """A request begins; its departures go to the delivery."""
        self._deliveries[arrival.number] = (delivery, self.timetable.arrive(arrival))
        self._set_timer()

    def abandon(self, number: int) -> None:
        """The client of a request has gone away."""
        if number not in self._deliveries:
            return
        now = self.loop.time()
        self._dispatch(self.timetable.abort(number, self.clock.simulated(now)), now)
        forgotten = self._deliveries.pop(number, None)
        if forgotten is not None:
            self._note(*forgotten)
        self._set_timer()

    def _set_timer(self) -> None:
        at = self.clock.real(self.timetable.next_at())
        if self._outbox:
            at = min(at, self._outbox[0][0])
        if self._timer is not None:
            if self._timer.when() == at:
                return
            self._timer.cancel()
            self._timer = None
        if at < NEVER:
            self._timer = self.loop.call_at(at, self._ring, at)

    def _ring(self, at: float) -> None:
        self._timer = None
        now = max(at, self.loop.time())
        self._dispatch(self.timetable.advance(self.clock.simulated(now)), now)
        while self._outbox and self._outbox[0][0] <= now:
            planned, _, _, departure = heapq.heappop(self._outbox)
            self._deliver(departure, planned)
        self._set_timer()

    def _dispatch(self, departures: list[Departure], now: float) -> None:
        for departure in departures:
            planned = self.clock.real(departure.at)
            if planned <= now and not self._outbox:
                self._deliver(departure, planned)
            else:
                heapq.heappush(self._outbox, (planned, departure.number, departure.first, departure))

    def _deliver(self, departure: Departure, planned: float) -> None:
        known = self._deliveries.get(departure.number)
        if known is None:
            return
        delivery, course = known
        if departure.first == 0 or departure.last:
            self._note(delivery, course)
        delivery.deliver(departure, planned)
        if departure.last:
            del self._deliveries[departure.number]

    def _note(self, delivery: Delivery, course: Course) -> None:
        """Write the engine's own moments into the truth."""
        truth = delivery.truth
        truth.cached_tokens, truth.preemptions = course.cached_tokens, course.preemptions
        truth.drafted, truth.accepted = course.drafted, course.accepted
        truth.queued = self.clock.real(course.queued_at)
        for name in ("prefill_start", "prefill_end", "handed_over"):
            moment = getattr(course, name)
            setattr(truth, name, None if moment is None else self.clock.real(moment))
