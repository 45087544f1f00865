"""What every way of driving load has in common: requests built ahead, the caller told, Ctrl-C, and the result.

A driver (`closed`, `open_loop`) decides when each request goes; `Drive` keeps the books around it.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.client import Client, Finished
from phasegate.load.health import ClientHealth, WorkerHealth
from phasegate.load.pacing import mean_rate
from phasegate.load.request_builder import Outgoing

BUILT_AHEAD = 256 * 1024 * 1024
"""Bytes of request bodies built before the window. Of longer lists the rest is built between answers, at about
0.2 ms each, rather than holding gigabytes."""

GONE_AFTER = 20
"""Connections refused in a row after which the server counts as gone ..."""

GONE_SECONDS = 3.0
"""... once that has lasted so long: a busy server may refuse a burst, and one that restarts is not measured."""

OnDone = Callable[[int, Recording], None]
"""Called with a request's place in the list and its recording. Runs inside the measured window: be quick."""


class ControlChannel(Protocol):
    """How a driver that is one of several (`load.workers`) hears from the others and is heard."""

    def listening(self, abort: Callable[[], None]) -> AbstractContextManager[None]:
        """Take commands in the running loop until the block is left; ``abort`` gives up what is in flight."""

    async def line_up(self) -> float:
        """All is ready here; wait until it is everywhere, and return the moment of the common start, yet to come."""

    def kept(self, place: int, outcome: Recording | Finished) -> None:
        """A request has ended."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One run of load, and how it was driven.

    Attributes:
        recordings: one for every request that was begun, in the order of the requests given. Decode them with
            `wire.openai_stream`.
        health: what the client saw of itself.
        max_concurrency: what was asked for; None in an open loop without a cap.
        peak_in_flight: requests between their send and their end, at most at one moment.
        started, ended: monotonic moments of the window: first wave ready to go (of a schedule: its offset 0),
            last answer over.
        unsent: ids of requests never begun, because the run was stopped.
        interrupted: True when Ctrl-C ended the run; in-flight requests are then recorded as cancelled.
        client: how the client measured (`Client.facts`).
        scheduled: whether requests had moments at which they were due (open loop).
        server_gone: whether the run was ended because the server took no connection any more.
        workers: how each of several workers did; empty for one process. ``health`` is then the worst of theirs.
    """

    recordings: tuple[Recording, ...]
    health: ClientHealth
    max_concurrency: int | None
    peak_in_flight: int
    started: float
    ended: float
    unsent: tuple[str, ...]
    interrupted: bool
    client: dict[str, object]
    scheduled: bool = False
    server_gone: bool = False
    workers: tuple[WorkerHealth, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether less was measured than was asked for."""
        return self.interrupted or bool(self.unsent)

    @property
    def concurrency_reached(self) -> bool:
        """Whether as many requests were in flight as asked for (or as there were requests); True without a cap."""
        if self.max_concurrency is None:
            return True
        asked = min(self.max_concurrency, len(self.recordings) + len(self.unsent))
        return self.peak_in_flight >= asked

    @property
    def requested_rate(self) -> float | None:
        """Requests a second of the schedule, over those begun; None in a closed loop or where no time passes."""
        return mean_rate([one.due for one in self.recordings]) if self.scheduled else None

    @property
    def achieved_rate(self) -> float | None:
        """Requests a second as they were sent; None for fewer than two moments.

        A request that found no connection counts at its due moment: it was offered, and the server refused it.
        """
        return mean_rate([one.due if one.sent is None else one.sent for one in self._offered()])

    @property
    def schedule_delays(self) -> tuple[float, ...]:
        """Seconds between due and sent of every request that was sent, in the order given."""
        return tuple(one.sent - one.due for one in self.recordings if one.sent is not None)

    @property
    def mean_in_flight(self) -> float:
        """Requests in flight on average between the first send and the last end; 0.0 where nothing was sent."""
        sent = [(one.sent, one.ended_at) for one in self.recordings if one.sent is not None]
        if not sent:
            return 0.0
        window = max(end for _, end in sent) - min(begin for begin, _ in sent)
        return sum(end - begin for begin, end in sent) / window if window > 0 else float(len(sent))

    def _offered(self) -> list[Recording]:
        return [one for one in self.recordings if one.sent is not None or one.ending is Ending.CONNECT_FAILED]


def refuse_inside_a_loop(name: str) -> None:
    """Say which function cannot be called where an event loop is already running.

    Raises:
        RuntimeError: one is.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{name} cannot run inside a running event loop; use phasegate.load.client.Client there")


class Drive:
    """The books of one run: what is built, what came back, and why it ends."""

    def __init__(
        self,
        target: Target,
        requests: Sequence[Request],
        room: int,
        on_done: OnDone | None,
        stop: Callable[[], bool] | None,
        channel: ControlChannel | None = None,
    ) -> None:
        self.client = Client(target, room)
        self.channel = channel
        self.requests = requests
        self.interrupted = False
        self.outcomes: dict[int, Recording | Finished] = {}
        self.fault: Exception | None = None
        self._on_done = on_done
        self._stop = stop
        self._built: dict[int, Outgoing] = {}
        self._refused: list[float] = []
        self.server_gone = False

    @property
    def ending(self) -> bool:
        """Whether no further request may be begun."""
        cut_short = self.interrupted or self.server_gone or self.fault is not None
        return cut_short or (self._stop is not None and self._stop())

    async def build_ahead(self) -> None:
        """Build requests from the first on, as many as `BUILT_AHEAD` allows."""
        built = 0
        for place, request in enumerate(self.requests):
            if built > BUILT_AHEAD:
                return
            self._built[place] = await self.client.prepare(request)
            built += len(self._built[place].message.content)

    async def outgoing(self, place: int) -> Outgoing:
        """The finished request of that place; built now where it was not before."""
        return self._built.pop(place, None) or await self.client.prepare(self.requests[place])

    def keep(self, place: int, outcome: Recording | Finished) -> None:
        """Enter an outcome into the books, and tell the caller who wants to know."""
        self._look_for_the_server(outcome)
        self.outcomes[place] = self._tell(place, outcome)
        if self.channel is not None:
            self.channel.kept(place, self.outcomes[place])

    def _look_for_the_server(self, outcome: Recording | Finished) -> None:
        """End the run where the server is gone: the rest of the list would only measure its absence."""
        if isinstance(outcome, Finished) or outcome.ending is not Ending.CONNECT_FAILED:
            self._refused.clear()
            return
        self._refused.append(outcome.ended_at)
        lasted = self._refused[-1] - self._refused[0]
        self.server_gone = self.server_gone or (len(self._refused) >= GONE_AFTER and lasted >= GONE_SECONDS)

    def result(
        self, health: ClientHealth, started: float | None, max_concurrency: int | None, *, scheduled: bool
    ) -> LoadResult:
        """What came of it; raises the caller's own fault where `on_done` had one."""
        if self.fault is not None:
            raise self.fault
        recordings = [read_outcome(self.outcomes[place]) for place in sorted(self.outcomes)]
        ended = max((recording.ended_at for recording in recordings), default=started or 0.0)
        return LoadResult(
            recordings=tuple(recordings),
            health=health,
            max_concurrency=max_concurrency,
            peak_in_flight=self.client.peak_in_flight,
            started=started or ended,
            ended=ended,
            unsent=tuple(r.request_id for place, r in enumerate(self.requests) if place not in self.outcomes),
            interrupted=self.interrupted,
            client=self.client.facts(),
            scheduled=scheduled,
            server_gone=self.server_gone,
        )

    def _tell(self, place: int, outcome: Recording | Finished) -> Recording | Finished:
        """Hand the recording to a caller who wants it now; else leave the reading of it for after the window."""
        if self._on_done is None or self.fault is not None:
            return outcome
        recording = read_outcome(outcome)
        try:
            self._on_done(place, recording)
        except Exception as fault:  # the caller's own fault: end the run cleanly, then raise it
            self.fault = fault
            self.client.abort()
        return recording

    def _interrupt(self) -> None:
        """First Ctrl-C: give up what is in flight. The handler is gone then, so a second one is Python's."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self._give_up()

    def _give_up(self) -> None:
        self.interrupted = True
        self.client.abort()

    @contextmanager
    def ctrl_c(self) -> Iterator[None]:
        """Ctrl-C ends the run instead of the process; only the main thread can be told of it.

        One of several drivers is told by its cue instead.
        """
        if self.channel is not None:
            with self.channel.listening(self._give_up):
                yield
            return
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


def read_outcome(outcome: Recording | Finished) -> Recording:
    """The recording of an ended request; of one that is not read yet, that costs some microseconds a read."""
    return outcome.recording() if isinstance(outcome, Finished) else outcome
