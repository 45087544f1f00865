"""Connections: opened before the clock starts, used for one request, closed after its answer.

One connection a request is the only policy under which a server that says keep-alive and then closes
(llama.cpp does, after every streamed answer) can never turn into an error or a hidden second attempt.
What it costs, the set-up, is measured apart (`Recording.connect_time`) and is in no latency.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from time import monotonic
from typing import Protocol, cast

from phasegate.core.atomic_write import os_words
from phasegate.load.exchange import Exchange, describe
from phasegate.load.reactor import Reactor
from phasegate.load.tls import tls_words


class ConnectFailedError(Exception):
    """No connection could be made; the text says why, in one line."""


class Link(Protocol):
    """An open connection."""

    def start(self, exchange: Exchange, payload: bytes) -> None:
        """Stamp the send, write the request and read the answer into the exchange."""

    def close(self) -> None:
        """Stop reading and give the socket back. Safe to call twice."""


class PlainLink:
    """A TCP connection read by the reactor."""

    def __init__(self, sock: socket.socket, reactor: Reactor) -> None:
        self._socket = sock
        self._reactor = reactor
        self._loop = asyncio.get_running_loop()
        self._rest: memoryview | None = None

    def start(self, exchange: Exchange, payload: bytes) -> None:
        """Stamp the send and write; what the socket does not take at once follows as it drains."""
        self._reactor.add(self._socket, exchange)
        exchange.begin()
        self._write(memoryview(payload))
        exchange.watch(self._reactor.drain)

    def _write(self, payload: memoryview) -> None:
        try:
            count = self._socket.send(payload)
        except BlockingIOError:
            count = 0
        except OSError:
            # The reading side sees the same fault, after the answer that may explain it (an early 4xx).
            self._stop_writing()
            return
        if count < len(payload):
            if self._rest is None:
                self._loop.add_writer(self._socket.fileno(), self._write_on)
            self._rest = payload[count:]
        else:
            self._stop_writing()

    def _write_on(self) -> None:
        if self._rest is not None:
            self._write(self._rest)

    def _stop_writing(self) -> None:
        if self._rest is not None:
            self._loop.remove_writer(self._socket.fileno())
            self._rest = None

    def close(self) -> None:
        """Stop reading and give the socket back."""
        if self._socket.fileno() >= 0:
            self._stop_writing()
            self._reactor.remove(self._socket)
            self._socket.close()


class TlsLink(asyncio.Protocol):
    """A TLS connection through asyncio's own transport; moments are taken when plain text comes out."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._broken: BaseException | None = None
        self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        self._transport = cast(asyncio.Transport, transport)

    def start(self, exchange: Exchange, payload: bytes) -> None:
        """Stamp the send and write."""
        self._exchange = exchange
        exchange.begin()
        if self._over or self._transport is None:
            exchange.lost(monotonic(), self._broken)
            return
        self._transport.write(payload)
        exchange.watch(None)

    def data_received(self, data: bytes) -> None:
        """Decrypted bytes of the answer."""
        if self._exchange is not None:
            self._exchange.received(monotonic(), bytes(data))

    def eof_received(self) -> bool:
        """The peer said goodbye."""
        if self._exchange is not None:
            self._exchange.closed(monotonic())
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, by whatever way."""
        self._over = True
        self._broken = exc
        if self._exchange is None:
            return
        if exc is None:
            self._exchange.closed(monotonic())
        else:
            self._exchange.lost(monotonic(), exc)

    def close(self) -> None:
        """Drop the connection without waiting for the peer's goodbye."""
        if self._transport is not None:
            self._transport.abort()


class Dialer:
    """Opens connections to one host, remembering which of its addresses answered."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, reactor: Reactor) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._reactor = reactor
        self._addresses: list[tuple[int, tuple[object, ...]]] = []

    async def open(self, timeout: float | None) -> Link:
        """A fresh connection, ready for one request.

        Raises:
            ConnectFailedError: no address answered, or not within ``timeout`` seconds, or TLS was refused.
        """
        try:
            return await asyncio.wait_for(self._open(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise ConnectFailedError(f"no connection to {self._where} within {timeout:g} s") from None
        except ssl.SSLError as error:
            raise ConnectFailedError(tls_words(error, self._where)) from None
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # ours, not the server's
                raise ConnectFailedError(os_words(error)) from None
            raise ConnectFailedError(f"cannot connect to {self._where}: {describe(error)}") from None

    @property
    def _where(self) -> str:
        return f"{self._host}:{self._port}"

    async def _open(self) -> Link:
        sock = await self._connect()
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                return PlainLink(sock, self._reactor)
            loop = asyncio.get_running_loop()
            make: Callable[[], TlsLink] = TlsLink
            _, link = await loop.create_connection(make, sock=sock, ssl=self._tls, server_hostname=self._host)
            return link
        except BaseException:
            sock.close()
            raise

    async def _connect(self) -> socket.socket:
        if not self._addresses:
            self._addresses = await self._resolve()
        failure: OSError = OSError("no address")
        for place, (family, address) in enumerate(self._addresses):
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                await asyncio.get_running_loop().sock_connect(sock, address)
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                if place:
                    self._addresses = [self._addresses[place]]
                return sock
        raise failure

    async def _resolve(self) -> list[tuple[int, tuple[object, ...]]]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]
