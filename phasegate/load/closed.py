"""The closed loop: a fixed number of requests in flight, a new one the moment an old one ends.

Everything that costs time and is not the measurement happens first: requests are built, the first wave's
connections are opened, garbage is collected. Then the first wave goes out together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Recording
from phasegate.load.client import Finished
from phasegate.load.driving import ControlChannel, Drive, LoadResult, OnDone, refuse_inside_a_loop
from phasegate.load.health import Watch, no_garbage_collection

__all__ = ["LoadResult", "OnDone", "run_closed"]


def run_closed(
    target: Target,
    requests: Sequence[Request],
    *,
    max_concurrency: int,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
    channel: ControlChannel | None = None,
) -> LoadResult:
    """Send all requests, at most ``max_concurrency`` at a time, and return when the last has ended.

    Ctrl-C ends the run but raises nothing: what was measured comes back with ``interrupted`` set (a second
    Ctrl-C raises KeyboardInterrupt as usual). ``stop`` is asked before each new request; once it says True
    no more are begun and those in flight run to their end. ``channel`` is for one of many workers. Must not be called
    from inside a running event loop.

    Raises:
        ValueError: ``max_concurrency`` is below 1, or a request cannot be built.
        OSError: this process may not open so many files.
        RuntimeError: called from inside a running event loop; use `Client` there.
    """
    refuse_inside_a_loop("run_closed")
    run = _ClosedRun(target, requests, max_concurrency, on_done, stop, channel)
    asyncio.run(run.run())
    return run.result_of_run()


class _ClosedRun(Drive):
    """The state of one run."""

    _next = 0

    async def run(self) -> None:
        """Send everything. Returns nothing: asyncio.run puts what its coroutine returns through repr()."""
        async with self.client as client:
            await self.build_ahead()
            workers = min(client.max_concurrency, len(self.requests))
            watch = Watch()
            self._gate = _StartingGate(workers, watch.begin, self.channel)
            with no_garbage_collection(), self.ctrl_c():
                await asyncio.gather(*(self._work() for _ in range(workers)))
                self._health = watch.end(client.read_lag)

    def result_of_run(self) -> LoadResult:
        """What came of it; raises the caller's own fault where `on_done` had one."""
        return self.result(self._health, self._gate.opened_at, self.client.max_concurrency, scheduled=False)

    async def _work(self) -> None:
        """One place in the loop: takes the next request until none is left."""
        place = self._take()
        if place is None:
            self._gate.leave()
            return
        outcome = await self._send(place, first=True)
        while place is not None:
            self.keep(place, outcome)
            place = self._take()
            if place is not None:
                outcome = await self._send(place, first=False)

    async def _send(self, place: int, *, first: bool) -> Recording | Finished:
        client = self.client
        outgoing = await self.outgoing(place)
        if client.proxied:
            if first:
                await self._gate.wait()
            return await client.send_prepared(outgoing)
        opened = await client.open(outgoing)
        if first:
            await self._gate.wait()
        return await client.exchange(outgoing, opened)

    def _take(self) -> int | None:
        if self._next >= len(self.requests) or self.ending:
            return None
        self._next += 1
        return self._next - 1


class _StartingGate:
    """Lets the first wave go at the same moment, once all of it is ready, here and wherever else the cue comes from."""

    def __init__(self, count: int, on_open: Callable[[], None], channel: ControlChannel | None) -> None:
        self._missing = count
        self._on_open = on_open
        self._channel = channel
        self._lining_up: asyncio.Task[None] | None = None
        self._open = asyncio.Event()
        self.opened_at: float | None = None

    async def wait(self) -> None:
        """Ready; go on when all are."""
        self.leave()
        await self._open.wait()

    def leave(self) -> None:
        """One fewer to wait for."""
        self._missing -= 1
        if self._missing > 0 or self.opened_at is not None or self._lining_up is not None:
            return
        if self._channel is None:
            self._let_go()
        else:
            self._lining_up = asyncio.ensure_future(self._line_up(self._channel))

    async def _line_up(self, channel: ControlChannel) -> None:
        await asyncio.sleep(max(await channel.line_up() - monotonic(), 0.0))
        self._let_go()

    def _let_go(self) -> None:
        self.opened_at = monotonic()
        self._on_open()
        self._open.set()
