"""The measuring client: one request in, one `Recording` out, whatever happens on the way.

Order of events: the request is built by openai (`door`), a connection is opened (`link`), then the clock
starts, the finished bytes are written, and the answer's reads are stamped (`reactor`, `exchange`). Nothing
is retried and nothing is decoded here. A target behind a proxy goes through openai's own transport
(`through_httpx2`), whose larger error the client states in `Client.facts`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from types import TracebackType

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.answer import unframe
from phasegate.load.exchange import Exchange
from phasegate.load.files import allow_open_files
from phasegate.load.link import ConnectFailedError, Dialer, Link
from phasegate.load.reactor import Reactor
from phasegate.load.request_builder import Door, Outgoing
from phasegate.load.route import Route, route_to
from phasegate.load.through_httpx2 import Httpx2Path
from phasegate.load.tls import trust

DIAL_AT_ONCE = 64
"""Connections being opened at the same moment. Common listen queues hold 100 (asyncio) or 128; a SYN that
finds the queue full is dropped and comes again a whole second later."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection waiting for its request, or the reason why there is none.

    Attributes:
        link: None when ``failure`` or ``cancelled`` says why.
        began: when opening it was begun.
        seconds: how long that took.
        failure: the reason in one line, empty when there is a link.
        cancelled: the client was told to stop meanwhile.
    """

    link: Link | None
    began: float
    seconds: float
    failure: str = ""
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A request that is over and not yet read: its recording is made on demand, outside the measured window."""

    request: Request
    opened: Opened
    exchange: Exchange

    def recording(self) -> Recording:
        """The recording; takes the transfer coding out, some microseconds a read."""
        return _recording(self.request, self.opened, self.exchange)


class Client:
    """Sends requests to one target and records what comes back. An async context manager.

    ``max_concurrency`` is what the caller promises to keep in flight at most; the client makes room for it
    (open files) and never queues below it.

    Raises:
        ValueError: the concurrency is below 1.
        EngineError: the environment names a proxy that cannot be used.
    """

    def __init__(self, target: Target, max_concurrency: int = 1) -> None:
        if max_concurrency < 1:
            raise ValueError(f"concurrency {max_concurrency} is not possible; use 1 or more")
        self.target = target
        self.max_concurrency = max_concurrency
        self.in_flight = 0
        self.peak_in_flight = 0
        """Requests between their send and their end, at most at one moment."""
        self._route = Route(target.base_url) if target.transport == "socket" else route_to(target.base_url)
        self.proxied = target.transport == "httpx2" or self._route.proxy is not None
        """Whether requests take the way through a proxy (`through_httpx2`)."""
        self._aborted = False
        self._running: set[Exchange] = set()
        self._waiting: set[asyncio.Task[Link] | asyncio.Task[Recording]] = set()

    async def __aenter__(self) -> Client:
        allow_open_files(self.max_concurrency)
        self._door = Door(self.target)
        self._reactor = Reactor()
        self._slots = asyncio.Semaphore(DIAL_AT_ONCE)
        self._dialers: dict[tuple[str, str, int], Dialer] = {}
        self._httpx2 = Httpx2Path(self.target, self._route) if self.proxied else None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()
        if self._waiting:
            await asyncio.wait(self._waiting)
        if self._httpx2 is not None:
            await self._httpx2.close()
        self._reactor.close()
        await self._door.close()

    @property
    def read_lag(self) -> tuple[int, float, float]:
        """Reads with a kernel stamp, and their mean and longest wait in seconds before they were fetched."""
        lag = self._reactor.lag
        return lag.reads, lag.total / lag.reads if lag.reads else 0.0, lag.longest

    def facts(self) -> dict[str, object]:
        """How this client measures: its transport, its stamps, its connection policy."""
        if self._httpx2 is not None:
            return {"transport": "httpx2", "stamps": "after the library's read", "connections": "one a request"}
        kernel = self._reactor.kernel_stamps and self.target.base_url.startswith("http:")
        return {
            "transport": "socket",
            "stamps": "kernel receive time" if kernel else "after the read",
            "connections": "one a request",
        }

    async def prepare(self, request: Request) -> Outgoing:
        """Build the request ahead of time; nothing is sent."""
        return await self._door.prepare(request)

    async def send(self, request: Request) -> Recording:
        """Build, connect, send and record one request.

        Every failure is an `Ending` of the recording, never an exception; only cancelling the calling task
        raises.
        """
        return await self.send_prepared(await self.prepare(request))

    async def send_prepared(self, outgoing: Outgoing) -> Recording:
        """The same for a request that was built before."""
        if self._httpx2 is not None:
            return await self._send_through_httpx2(outgoing)
        outcome = await self.exchange(outgoing, await self.open(outgoing))
        return outcome.recording() if isinstance(outcome, Finished) else outcome

    async def open(self, outgoing: Outgoing) -> Opened:
        """Open a connection for the request without sending it."""
        began = monotonic()
        if self._stopping():
            return Opened(None, began, 0.0, cancelled=True)
        dialer = self._dialer(outgoing)
        async with self._slots:
            began = monotonic()
            dialling = asyncio.ensure_future(dialer.open(self.target.connect_timeout))
            self._waiting.add(dialling)
            try:
                link = await dialling
            except ConnectFailedError as failure:
                return Opened(None, began, monotonic() - began, failure=str(failure))
            except asyncio.CancelledError:
                if not self._stopping():
                    dialling.add_done_callback(_close_unused)
                    dialling.cancel()
                    raise
                return Opened(None, began, monotonic() - began, cancelled=True)
            finally:
                self._waiting.discard(dialling)
        return Opened(link, began, monotonic() - began)

    async def exchange(self, outgoing: Outgoing, opened: Opened) -> Recording | Finished:
        """Send over an open connection and keep what comes back; the connection is closed afterwards."""
        if opened.link is None:
            ending = Ending.CANCELLED if opened.cancelled else Ending.CONNECT_FAILED
            return _not_sent(outgoing, opened, ending)
        loop = asyncio.get_running_loop()
        exchange = Exchange(loop, self.target.idle_timeout, self.target.timeout, self._over)
        payload = outgoing.to_bytes()
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        self._running.add(exchange)
        try:
            if self._stopping():
                exchange.end(Ending.CANCELLED, monotonic(), "stopped before it was sent")
            else:
                opened.link.start(exchange, payload)
            await exchange.done
        finally:
            exchange.end(Ending.CANCELLED, monotonic(), "given up by the caller")
            opened.link.close()
        return Finished(outgoing.request, opened, exchange)

    def abort(self) -> None:
        """End everything that is in flight as cancelled; later sends end so at once."""
        self._aborted = True
        for exchange in tuple(self._running):
            exchange.end(Ending.CANCELLED, monotonic(), "stopped by the client")
        for task in tuple(self._waiting):
            task.cancel()

    def _stopping(self) -> bool:
        return self._aborted

    def _over(self, exchange: Exchange) -> None:
        self.in_flight -= 1
        self._running.discard(exchange)

    def _dialer(self, outgoing: Outgoing) -> Dialer:
        url = outgoing.message.url
        key = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        if key not in self._dialers:
            tls = trust() if url.scheme == "https" else None
            self._dialers[key] = Dialer(url.host, key[2], tls, self._reactor)
        return self._dialers[key]

    async def _send_through_httpx2(self, outgoing: Outgoing) -> Recording:
        assert self._httpx2 is not None
        began = monotonic()
        if self._stopping():
            return _not_sent(outgoing, Opened(None, began, 0.0), Ending.CANCELLED)
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        sending = asyncio.ensure_future(self._httpx2.send(outgoing))
        self._waiting.add(sending)
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            sending.cancel()
            if not self._stopping():
                raise
            return await sending
        finally:
            self._waiting.discard(sending)
            self.in_flight -= 1


def _close_unused(dialling: asyncio.Task[Link]) -> None:
    """A connection that came up for a caller who is gone."""
    if not dialling.cancelled() and dialling.exception() is None:
        dialling.result().close()


def _not_sent(outgoing: Outgoing, opened: Opened, ending: Ending) -> Recording:
    request = outgoing.request
    return Recording(
        request_id=request.request_id,
        due=opened.began if request.due is None else request.due,
        sent=None,
        connect_time=None,
        http_status=None,
        headers=(),
        headers_at=None,
        reads=(),
        ending=ending,
        ended_at=opened.began + opened.seconds,
        detail=opened.failure or "stopped before it was sent",
        expected=request.expected,
    )


def _recording(request: Request, opened: Opened, exchange: Exchange) -> Recording:
    assert exchange.ending is not None
    answer = unframe(exchange.arrivals, exchange.pieces)
    sent = exchange.sent
    due = request.due
    if due is None:
        due = sent if sent is not None else opened.began
    return Recording(
        request_id=request.request_id,
        due=due,
        sent=sent,
        connect_time=opened.seconds,
        http_status=answer.status,
        headers=answer.headers,
        headers_at=answer.headers_at,
        reads=answer.reads,
        ending=exchange.ending,
        ended_at=exchange.ended_at,
        detail=exchange.detail,
        expected=request.expected,
    )
