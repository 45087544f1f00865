"""The way through a proxy: openai's default HTTP library sends, and its byte stream is stamped.

Slower and later than the socket reader (each read wakes a task), so it is only for what the socket reader
does not do. The clock still starts when the request's headers are written: the library reports that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import httpx2

from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Read, Recording
from phasegate.load.request_builder import Outgoing
from phasegate.load.route import Route
from phasegate.load.tls import tls_error, tls_words

_CONNECT_FAILURES = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.PoolTimeout,
)


class _Log:
    """What has been seen of one request so far."""

    def __init__(self) -> None:
        self.began = monotonic()
        self.sent: float | None = None
        self.status: int | None = None
        self.headers: tuple[tuple[str, str], ...] = ()
        self.headers_at: float | None = None
        self.reads: list[Read] = []

    async def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        """Called by the HTTP library; a CONNECT to the proxy comes first, so the last send counts."""
        if event.endswith(".send_request_headers.started"):
            self.sent = monotonic()


class Httpx2Path:
    """Sends prepared requests through httpx2, one connection each."""

    def __init__(self, target: Target, route: Route) -> None:
        self._timeout = target.timeout
        self._route = route
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx2.AsyncClient(limits=limits, **route.options())

    async def close(self) -> None:
        """Close what is still open."""
        await self._http.aclose()

    async def send(self, outgoing: Outgoing) -> Recording:
        """Send and record; cancelling the task ends the recording as cancelled."""
        log = _Log()
        outgoing.message.extensions["trace"] = log.trace
        try:
            await asyncio.wait_for(self._receive(outgoing, log), self._timeout)
            ending, detail = Ending.EOF, ""
        except asyncio.CancelledError:
            ending, detail = Ending.CANCELLED, "stopped by the client"
        except httpx2.HTTPError as error:
            ending, detail = _ending_of(error), self._words(error)
        except (asyncio.TimeoutError, TimeoutError):
            ending, detail = Ending.TOTAL_TIMEOUT, f"no end within {self._timeout:g} s"
        if ending is Ending.CONNECT_FAILED:
            log.sent = None
        sent = log.sent
        due = outgoing.request.due
        if due is None:
            due = log.began if sent is None else sent
        return Recording(
            request_id=outgoing.request.request_id,
            due=due,
            sent=sent,
            connect_time=None if sent is None else sent - log.began,
            http_status=log.status,
            headers=log.headers,
            headers_at=log.headers_at,
            reads=tuple(log.reads),
            ending=ending,
            ended_at=monotonic(),
            detail=detail,
            expected=outgoing.request.expected,
        )

    def _words(self, error: httpx2.HTTPError) -> str:
        fault = tls_error(error)
        if fault is not None:
            return tls_words(fault, urlsplit(self._route.url).netloc)
        return self._route.barred(error) or str(error) or type(error).__name__

    async def _receive(self, outgoing: Outgoing, log: _Log) -> None:
        response = await self._http.send(outgoing.message, stream=True)
        try:
            log.headers_at = monotonic()
            log.status = response.status_code
            log.headers = tuple(
                (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw
            )
            async for data in response.aiter_raw():
                log.reads.append(Read(monotonic(), data))
        finally:
            await response.aclose()


def _ending_of(error: httpx2.HTTPError) -> Ending:
    if isinstance(error, _CONNECT_FAILURES):
        return Ending.CONNECT_FAILED
    if isinstance(error, httpx2.TimeoutException):
        return Ending.IDLE_TIMEOUT
    if isinstance(error, httpx2.RemoteProtocolError):
        closed = "peer closed" in str(error) or "disconnected" in str(error)
        return Ending.INCOMPLETE if closed else Ending.PROTOCOL
    if isinstance(error, httpx2.NetworkError):
        return Ending.INCOMPLETE
    return Ending.PROTOCOL
