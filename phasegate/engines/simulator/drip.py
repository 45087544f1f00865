"""A wire that lets go of one byte at a time, in order, with everything else waiting behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from phasegate.engines.simulator.wire import Wire

Action = Callable[[], None]


class Drip:
    """See `wire.Wire`. What is asked for after a write happens when its last byte has left.

    Args:
        wire: where the bytes go.
        gap: real seconds between two bytes.
    """

    def __init__(self, wire: Wire, gap: float) -> None:
        self._wire = wire
        self._gap = gap
        self._line: deque[bytes | Action] = deque()
        self._running = False

    def write(self, data: bytes) -> None:
        """Put bytes at the end of the line."""
        self._line.extend(data[place : place + 1] for place in range(len(data)))
        self._go_on()

    def when_out(self, action: Action) -> None:
        """Act once everything written so far has left."""
        self._line.append(action)
        self._go_on()

    def done(self) -> None:
        """See `wire.Wire`."""
        self.when_out(self._wire.done)

    def reset(self) -> None:
        """See `wire.Wire`: at once, with what waits thrown away."""
        self._line.clear()
        self._wire.reset()

    def half_close(self) -> None:
        """See `wire.Wire`."""
        self.when_out(self._wire.half_close)

    def later(self, seconds: float, action: Action) -> None:
        """See `wire.Wire`."""
        self._wire.later(seconds, action)

    def _go_on(self) -> None:
        if not self._running:
            self._running = True
            self._next()

    def _next(self) -> None:
        while self._line:
            first = self._line.popleft()
            if isinstance(first, bytes):
                self._wire.write(first)
                self._wire.later(self._gap, self._next)
                return
            first()
        self._running = False
