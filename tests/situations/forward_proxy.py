"""A forward proxy on loopback for tests: whatever host is asked for, it fetches from one server, and it keeps a log."""

from __future__ import annotations

import base64
import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class ForwardProxy:
    """A running proxy.

    Attributes:
        address: ``host:port``.
        asked: first line of every request that came, such as ``GET http://llm.test/v1/models HTTP/1.1``.
    """

    address: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def forward_proxy(target: str, login: tuple[str, str] | None = None) -> Iterator[ForwardProxy]:
    """A proxy to the server at a URL. With a login, requests without it are answered with 407."""
    where = urlsplit(target)
    wanted = None if login is None else b"Basic " + base64.b64encode(":".join(login).encode())

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self._handle()

        def _handle(self) -> None:
            line = self.rfile.readline()
            head = list(iter(self.rfile.readline, b"\r\n"))
            proxy.asked.append(line.decode().strip())
            if wanted is not None and not any(wanted in one for one in head):
                self.wfile.write(b"HTTP/1.1 407 login wanted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            method, url, protocol = line.split()
            with socket.create_connection((where.hostname or "", where.port or 80)) as upstream:
                if method == b"CONNECT":
                    self.wfile.write(b"HTTP/1.1 200 here you are\r\n\r\n")
                else:
                    path = b"/" + url.split(b"/", 3)[3]
                    kept = [one for one in head if not one.lower().startswith((b"proxy-", b"connection:"))]
                    upstream.sendall(b" ".join((method, path, protocol)) + b"\r\n" + b"".join(kept))
                    upstream.sendall(b"connection: close\r\n\r\n")
                back = threading.Thread(target=_pump, args=(upstream, self.connection))
                back.start()
                _pump(self.rfile, upstream)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = ForwardProxy(f"127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _pump(source: object, sink: socket.socket) -> None:
    """Pass bytes on until their source ends, then tell the sink so."""
    read = source.recv if isinstance(source, socket.socket) else source.read1  # type: ignore[attr-defined]
    with contextlib.suppress(OSError):
        while data := read(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
