"""A small HTTP server on loopback whose doors answer what a test says, and which remembers who knocked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Door:
    """What one path answers: an object as JSON, or text as it stands."""

    content: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Knock:
    """One request: method, path with its query, and headers with lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class House:
    """A running server: its root URL and what was asked so far."""

    root: str
    knocks: list[Knock]

    @property
    def base_url(self) -> str:
        """Where its API is."""
        return f"{self.root}/v1"


def models(*names: str, owner: str = "somebody") -> Door:
    """A model list."""
    return Door({"object": "list", "data": [{"id": name, "owned_by": owner} for name in names]})


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The root URL of a server on loopback whose requests the handler answers, each in a thread of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def house(doors: Mapping[str, Door], *, server: str = "uvicorn") -> Iterator[House]:
    """A server with those doors; any other path answers 404. A POST opens the same doors as a GET."""
    knocks: list[Knock] = []

    class Handler(BaseHTTPRequestHandler):
        def version_string(self) -> str:
            return server

        def do_GET(self) -> None:
            knocks.append(Knock(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            self.rfile.read(int(self.headers.get("content-length") or 0))
            door = doors.get(self.path, Door({"error": "no such path"}, 404))
            text = door.content if isinstance(door.content, str) else json.dumps(door.content)
            body = b"" if door.content is None else text.encode()
            self.send_response(door.status)
            for name, value in door.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with listening(Handler) as root:
        yield House(root, knocks)
