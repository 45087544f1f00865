"""The open loop: requests go out when they are due, whether or not earlier ones have been answered.

The schedule never waits for the server, so a server that stalls meets the requests that real users would have sent
meanwhile. Each recording keeps when its request was due; counted from there, no wait is hidden, neither the
server's nor the client's own (coordinated omission). Connections are opened `LEAD` seconds before they are needed.
A cap on requests in flight makes due requests wait in the order of the schedule, and that wait is part of what is
recorded.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Recording
from phasegate.load.client import Finished
from phasegate.load.driving import ControlChannel, Drive, LoadResult, OnDone, refuse_inside_a_loop
from phasegate.load.health import ClientHealth, Watch, no_garbage_collection

LEAD = 0.25
"""Seconds before its due moment at which a request's connection is opened: longer than a TCP and TLS handshake
around the globe, shorter than any server lets a silent connection live."""

ROOM_WITHOUT_CAP = 4096
"""Requests in flight that an open loop without a cap makes room for (open files), where the schedule has so many."""


def run_open(
    target: Target,
    schedule: Sequence[tuple[float, Request]],
    *,
    max_concurrency: int | None = None,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
    channel: ControlChannel | None = None,
) -> LoadResult:
    """Send each request of the schedule when it is due, and return when the last has ended.

    Ctrl-C ends the run but raises nothing: what was measured comes back with ``interrupted`` set (a second Ctrl-C
    raises KeyboardInterrupt as usual). ``stop`` is asked before each new request; once it says True no more are
    begun and those in flight run to their end. Requests that an ended run never began are listed as unsent; of
    those in line for a place nothing is recorded. `load_check.load_problem` says whether the load was reached.

    Args:
        target: the server.
        schedule: offset in seconds from the start of the run, and the request; in any order.
        max_concurrency: requests in flight at most; None sends whatever is due.
        on_done: told the place in the schedule and the recording as each request ends.
        stop: asked whether to end.
        cue: for one of several workers.

    Raises:
        ValueError: an offset or the cap is not possible, or a request cannot be built.
        OSError: this process may not open so many files.
        RuntimeError: called from inside a running event loop; use `Client` there.
    """
    refuse_inside_a_loop("run_open")
    for offset, request in schedule:
        if not 0 <= offset < math.inf:
            raise ValueError(f"request {request.request_id} is due {offset:g} s after the start; use 0 or more")
    run = _OpenRun(target, schedule, max_concurrency, on_done, stop, channel)
    asyncio.run(run.run())
    return run.result_of_run()


class _OpenRun(Drive):
    """The state of one run. One task walks along the schedule; every request then has a task of its own."""

    _health: ClientHealth

    def __init__(
        self,
        target: Target,
        schedule: Sequence[tuple[float, Request]],
        max_concurrency: int | None,
        on_done: OnDone | None,
        stop: Callable[[], bool] | None,
        channel: ControlChannel | None,
    ) -> None:
        room = min(len(schedule), ROOM_WITHOUT_CAP) or 1 if max_concurrency is None else max_concurrency
        super().__init__(target, [request for _, request in schedule], room, on_done, stop, channel)
        self._offsets = [offset for offset, _ in schedule]
        self._cap = max_concurrency
        self._start = 0.0
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send everything. Returns nothing: asyncio.run puts what its coroutine returns through repr()."""
        async with self.client as client:
            await self.build_ahead()
            watch = Watch()
            with no_garbage_collection(), self.ctrl_c():
                # What a request needs before it can go, also the first, happens in the lead.
                self._start = monotonic() + LEAD if self.channel is None else await self.channel.line_up()
                watch.begin()
                self._places = asyncio.Semaphore(len(self.requests) + 1 if self._cap is None else self._cap)
                await self._walk()
                if self._running:
                    await asyncio.wait(self._running)
                self._health = watch.end(client.read_lag)

    def result_of_run(self) -> LoadResult:
        """What came of it; raises the caller's own fault where `on_done` had one."""
        return self.result(self._health, self._start, self._cap, scheduled=True)

    async def _walk(self) -> None:
        """Begin every request in the order in which they are due."""
        for place in sorted(range(len(self._offsets)), key=self._offsets.__getitem__):
            await self._sleep_until(self._start + self._offsets[place] - LEAD)
            # Taken here and not in the request's own task: the line for a place is then the schedule's order.
            if self.ending or not await self._got_a_place():
                return
            task = asyncio.ensure_future(self._one(place))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and isinstance(fault := task.exception(), Exception):
            self.fault = self.fault or fault

    async def _got_a_place(self) -> bool:
        await self._places.acquire()
        return not self.ending

    async def _one(self, place: int) -> None:
        try:
            outcome = await self._send(place)
        finally:
            self._places.release()
        self.keep(place, outcome)

    async def _send(self, place: int) -> Recording | Finished:
        client, due = self.client, self._start + self._offsets[place]
        outgoing = await self.outgoing(place)
        outgoing = replace(outgoing, request=replace(outgoing.request, due=due))
        if client.proxied:
            await self._sleep_until(due)
            return await client.send_prepared(outgoing)
        opened = await client.open(outgoing)
        await self._sleep_until(due)
        return await client.exchange(outgoing, opened)

    async def _sleep_until(self, moment: float) -> None:
        """Sleep, and wake early where the run is to end: nobody waits for a schedule of hours after Ctrl-C."""
        while not self.interrupted and self.fault is None and (left := moment - monotonic()) > 0:
            await asyncio.sleep(min(left, LEAD))
