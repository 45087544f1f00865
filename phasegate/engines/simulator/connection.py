"""One client's connection: bytes to requests, one at a time, and the few rough things a fault needs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Protocol, cast

from phasegate.engines.simulator import http1
from phasegate.engines.simulator.http1 import BadRequestError, HttpRequest, RequestReader


class App(Protocol):
    """Who answers requests."""

    def handle(self, request: HttpRequest, connection: Connection, arrived: float) -> None:
        """Answer a request whose last byte came at that moment; call ``connection.done()`` at the end."""

    def gone(self, connection: Connection) -> None:
        """The client closed the connection, whether or not an answer was under way."""


class Connection(asyncio.Protocol):
    """Requests come in order; the next waits until the answer to the one before is done."""

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self._keep_alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        arrived = self._loop.time()
        self._reader.feed(data)
        if not self._busy:
            self._take_next(arrived)

    def eof_received(self) -> bool:
        """A client that has closed is gone, as for most servers: what was under way for it is given up at once."""
        return False

    def connection_lost(self, _: Exception | None) -> None:
        """See `asyncio.BaseProtocol`."""
        self._transport = None
        self._app.gone(self)

    def _take_next(self, arrived: float) -> None:
        try:
            request = self._reader.next_request()
        except BadRequestError as error:
            self.write(http1.response(400, str(error).encode(), "text/plain", [("Connection", "close")]))
            self.close()
            return
        if request is not None:
            self._busy = True
            self._keep_alive = request.keep_alive
            self._app.handle(request, self, arrived)
        elif self._reader.wants_continue():
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def write(self, data: bytes) -> None:
        """See `delivery.Wire`; nothing happens when the connection is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def done(self) -> None:
        """See `delivery.Wire`."""
        self._busy = False
        if not self._keep_alive:
            self.close()
        elif self._transport is not None:
            # Not at once: an answer that was ready immediately would nest as deep as the requests are many.
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        if not self._busy and self._transport is not None:
            self._take_next(self._loop.time())

    def close(self) -> None:
        """Close after what was written has left."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """See `delivery.Wire`."""
        if self._transport is None:
            return
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            # Zero linger time turns the close into an RST.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def half_close(self) -> None:
        """See `delivery.Wire`."""
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """See `delivery.Wire`."""
        self._loop.call_later(seconds, lambda: action() if self._transport is not None else None)
