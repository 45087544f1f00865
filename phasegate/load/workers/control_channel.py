"""A worker's end of the line: takes commands while its driver runs, and sends finished recordings back.

Recordings are read and packed in the event loop, which is also where answers are read, so only a small share of its
time goes into it (`BUDGET` of every `TICK`); what does not fit is packed after the window. Sending is the business of
whoever takes the packed bytes (``post``), and must not block.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from phasegate.core.timeline import Recording
from phasegate.load.client import Finished
from phasegate.load.driving import read_outcome
from phasegate.load.workers.messages import Abort, Command, Ready, Start, Stop, pack, pack_batch, pack_recording

TICK = 0.05
"""Seconds between two looks at what has ended: what a killed worker loses is mostly younger than this."""

BUDGET = 0.001
"""Seconds of each tick in which recordings are packed: 2 % of the loop, and no send is later than this for it. A
recording of 60 reads takes about a fifth of it."""

AFTERWARDS = 64
"""Recordings in each batch after the window."""

Post = Callable[[bytes], None]


class WorkerControlChannel:
    """The control channel of one job; see `load.driving.ControlChannel`. Commands may be delivered from any thread."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[Command] = []
        self._ended: deque[tuple[int, Recording | Finished]] = deque()
        self._at: float | None = None
        self._stopped = False

    def stopped(self) -> bool:
        """Whether no further request may be begun."""
        return self._stopped

    def deliver(self, command: Command) -> None:
        """Hand over a command; one that comes before the driver listens waits for it."""
        with self._lock:
            if self._loop is None:
                self._early.append(command)
            else:
                self._loop.call_soon_threadsafe(self._take, command)

    @contextmanager
    def listening(self, abort: Callable[[], None]) -> Iterator[None]:
        """Take commands in the running loop until the block is left; ``abort`` gives up what is in flight."""
        loop = asyncio.get_running_loop()
        self._abort = abort
        self._called = asyncio.Event()
        with self._lock:
            self._loop = loop
            early, self._early = self._early, []
        for command in early:
            self._take(command)
        self._ticker = loop.call_later(TICK, self._tick)
        try:
            yield
        finally:
            self._ticker.cancel()
            with self._lock:
                self._loop = None

    async def line_up(self) -> float:
        """Say that everything is ready, and wait for the common start; its moment on this machine's clock."""
        self._post(pack(Ready()))
        await self._called.wait()
        return monotonic() if self._at is None else self._at

    def kept(self, place: int, outcome: Recording | Finished) -> None:
        """A request has ended."""
        self._ended.append((place, outcome))

    def send_rest(self) -> None:
        """After the window: send everything that has not been sent."""
        while self._ended:
            rest = [self._ended.popleft() for _ in range(min(AFTERWARDS, len(self._ended)))]
            self._post(pack_batch([pack_recording(place, read_outcome(outcome)) for place, outcome in rest]))

    def _take(self, command: Command) -> None:
        if isinstance(command, Start):
            self._at = command.at
            self._called.set()
        elif isinstance(command, Stop):
            self._stopped = True
        elif isinstance(command, Abort):
            self._abort()
            self._called.set()

    def _tick(self) -> None:
        until = monotonic() + BUDGET
        packed = []
        while self._ended and monotonic() < until:
            place, outcome = self._ended.popleft()
            packed.append(pack_recording(place, read_outcome(outcome)))
        if packed:
            self._post(pack_batch(packed))
        with contextlib.suppress(RuntimeError):  # the loop is closing
            self._ticker = asyncio.get_running_loop().call_later(TICK, self._tick)
