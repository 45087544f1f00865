"""The closed loop: a fixed number of requests in flight, a new one the moment an old one ends.

Everything that costs time and is not the measurement happens first: requests are built, the first wave's
connections are opened, garbage is collected. Then the first wave goes out together.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from phasegate.load.client import Client, Finished
from phasegate.load.door import Outgoing
from phasegate.load.health import ClientHealth, Watch, no_garbage_collection
from phasegate.load.request import Request
from phasegate.load.target import Target
from phasegate.timeline import Recording

BUILT_AHEAD = 256 * 1024 * 1024
"""Bytes of request bodies built before the window. Of longer lists the rest is built between answers, at about
0.2 ms each, rather than holding gigabytes."""

OnDone = Callable[[int, Recording], None]
"""Called with a request's place in the list and its recording. Runs inside the measured window: be quick."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One run of load, and how it was driven.

    Attributes:
        recordings: one for every request that was begun, in the order of the requests given. Decode them with
            `wire.openai_stream`.
        health: what the client saw of itself.
        max_concurrency: what was asked for.
        peak_in_flight: requests between their send and their end, at most at one moment.
        started, ended: monotonic moments of the window: first wave ready to go, last answer over.
        unsent: ids of requests never begun, because the run was stopped.
        interrupted: True when Ctrl-C ended the run; in-flight requests are then recorded as cancelled.
        client: how the client measured (`Client.facts`).
    """

    recordings: tuple[Recording, ...]
    health: ClientHealth
    max_concurrency: int
    peak_in_flight: int
    started: float
    ended: float
    unsent: tuple[str, ...]
    interrupted: bool
    client: dict[str, object]

    @property
    def partial(self) -> bool:
        """Whether less was measured than was asked for."""
        return self.interrupted or bool(self.unsent)

    @property
    def concurrency_reached(self) -> bool:
        """Whether as many requests were in flight as asked for (or as there were requests)."""
        asked = min(self.max_concurrency, len(self.recordings) + len(self.unsent))
        return self.peak_in_flight >= asked


def run_closed(
    target: Target,
    requests: Sequence[Request],
    *,
    max_concurrency: int,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
) -> LoadResult:
    """Send all requests, at most ``max_concurrency`` at a time, and return when the last has ended.

    Ctrl-C ends the run but raises nothing: what was measured comes back with ``interrupted`` set (a second
    Ctrl-C raises KeyboardInterrupt as usual). ``stop`` is asked before each new request; once it says True
    no more are begun and those in flight run to their end. Must not be called from inside a running event loop.

    Raises:
        ValueError: ``max_concurrency`` is below 1, or a request cannot be built.
        OSError: this process may not open so many files.
        RuntimeError: called from inside a running event loop; use `Client` there.
    """
    _refuse_inside_a_loop()
    run = _ClosedRun(target, requests, max_concurrency, on_done, stop)
    asyncio.run(run.run())
    return run.result()


def _refuse_inside_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("run_closed cannot run inside a running event loop; use phasegate.load.client.Client there")


class _ClosedRun:
    """The state of one run."""

    def __init__(
        self,
        target: Target,
        requests: Sequence[Request],
        max_concurrency: int,
        on_done: OnDone | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self._client = Client(target, max_concurrency)
        self._requests = requests
        self._on_done = on_done
        self._stop = stop
        self._interrupted = False
        self._next = 0
        self._outcomes: dict[int, Recording | Finished] = {}
        self._fault: Exception | None = None
        self._built: dict[int, Outgoing] = {}

    async def run(self) -> None:
        """Send everything. Returns nothing: asyncio.run puts what its coroutine returns through repr()."""
        async with self._client as client:
            await self._build_ahead()
            workers = min(client.max_concurrency, len(self._requests))
            watch = Watch()
            self._gate = _StartingGate(workers, watch.begin)
            with no_garbage_collection(), self._ctrl_c():
                await asyncio.gather(*(self._work() for _ in range(workers)))
                self._health = watch.end(client.read_lag)

    async def _build_ahead(self) -> None:
        built = 0
        for place, request in enumerate(self._requests):
            if built > BUILT_AHEAD:
                return
            self._built[place] = await self._client.prepare(request)
            built += len(self._built[place].message.content)

    def result(self) -> LoadResult:
        """What came of it; raises the caller's own fault where `on_done` had one."""
        if self._fault is not None:
            raise self._fault
        client = self._client
        recordings = [_read(self._outcomes[place]) for place in sorted(self._outcomes)]
        ended = max((recording.ended_at for recording in recordings), default=self._gate.opened_at or 0.0)
        return LoadResult(
            recordings=tuple(recordings),
            health=self._health,
            max_concurrency=client.max_concurrency,
            peak_in_flight=client.peak_in_flight,
            started=self._gate.opened_at or ended,
            ended=ended,
            unsent=tuple(r.request_id for place, r in enumerate(self._requests) if place not in self._outcomes),
            interrupted=self._interrupted,
            client=client.facts(),
        )

    async def _work(self) -> None:
        """One place in the loop: takes the next request until none is left."""
        place = self._take()
        if place is None:
            self._gate.leave()
            return
        outcome = await self._send(place, first=True)
        while place is not None:
            self._outcomes[place] = self._tell(place, outcome)
            place = self._take()
            if place is not None:
                outcome = await self._send(place, first=False)

    async def _send(self, place: int, *, first: bool) -> Recording | Finished:
        client = self._client
        outgoing = self._built.pop(place, None) or await client.prepare(self._requests[place])
        if client.proxied:
            if first:
                await self._gate.wait()
            return await client.send_prepared(outgoing)
        opened = await client.open(outgoing)
        if first:
            await self._gate.wait()
        return await client.exchange(outgoing, opened)

    def _take(self) -> int | None:
        if self._interrupted or self._fault is not None or self._next >= len(self._requests):
            return None
        if self._stop is not None and self._stop():
            return None
        self._next += 1
        return self._next - 1

    def _tell(self, place: int, outcome: Recording | Finished) -> Recording | Finished:
        """Hand the recording to a caller who wants it now; else leave the reading of it for after the window."""
        if self._on_done is None or self._fault is not None:
            return outcome
        recording = _read(outcome)
        try:
            self._on_done(place, recording)
        except Exception as fault:  # the caller's own fault: end the run cleanly, then raise it
            self._fault = fault
            self._client.abort()
        return recording

    def _interrupt(self) -> None:
        """First Ctrl-C: give up what is in flight. The handler is gone then, so a second one is Python's."""
        self._interrupted = True
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self._client.abort()

    @contextmanager
    def _ctrl_c(self) -> Iterator[None]:
        """Ctrl-C ends the run instead of the process; only the main thread can be told of it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGINT)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)


def _read(outcome: Recording | Finished) -> Recording:
    return outcome.recording() if isinstance(outcome, Finished) else outcome


class _StartingGate:
    """Lets the first wave go at the same moment, once all of it is ready."""

    def __init__(self, count: int, on_open: Callable[[], None]) -> None:
        self._missing = count
        self._on_open = on_open
        self._open = asyncio.Event()
        self.opened_at: float | None = None

    async def wait(self) -> None:
        """Ready; go on when all are."""
        self.leave()
        await self._open.wait()

    def leave(self) -> None:
        """One fewer to wait for."""
        self._missing -= 1
        if self._missing <= 0 and self.opened_at is None:
            self.opened_at = monotonic()
            self._on_open()
            self._open.set()
