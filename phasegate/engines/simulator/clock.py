"""Waking up on time: an event loop that sleeps in microseconds, and the simulator's seconds in real ones.

Python's epoll selector rounds its waiting up to whole milliseconds, so every departure would be half a
millisecond late on average. The epoll object is itself a file that ``select`` can wait for, and ``select`` takes
microseconds. No spinning: the machine may have few cores, and the client under test needs them.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from dataclasses import dataclass


class _MicrosecondSelector(selectors.DefaultSelector):
    """Waits for the selector's own file with ``select``, then asks it what there is."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def punctual_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose timers do not wait for the next millisecond."""
    return asyncio.SelectorEventLoop(_MicrosecondSelector())


@dataclass(frozen=True, slots=True)
class SimulatedClock:
    """Simulated seconds in real ones.

    Attributes:
        origin: the real moment at which simulated time is 0.
        speed: simulated seconds in one real second.
    """

    origin: float
    speed: float

    def simulated(self, real: float) -> float:
        """The simulated moment at a real one."""
        return (real - self.origin) * self.speed

    def real(self, simulated: float) -> float:
        """The real moment of a simulated one."""
        return self.origin + simulated / self.speed
