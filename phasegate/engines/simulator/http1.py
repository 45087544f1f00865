"""As much of HTTP/1.1 as a server of known timing needs: requests out of bytes, heads into bytes. No I/O.

Strategy: bytes pile up until a request is whole; whole requests come out one at a time. Bodies need a
Content-Length. See RFC 9112.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

LONGEST_HEAD = 64 * 1024
LONGEST_BODY = 64 * 1024 * 1024


class BadRequestError(ValueError):
    """Bytes that are not a request this server reads; the message goes into the 400 answer."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One whole request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants the connection to stay open."""
        return self.headers.get("connection", "").lower() != "close"


@dataclass
class RequestReader:
    """Turns bytes into requests."""

    _buffer: bytearray = field(default_factory=bytearray)
    _head: tuple[str, str, Mapping[str, str]] | None = None
    _length: int = 0

    def feed(self, data: bytes) -> None:
        """Take bytes from the wire."""
        self._buffer += data

    def wants_continue(self) -> bool:
        """Whether the client waits for leave to send the body of the request it has begun."""
        return (
            self._head is not None
            and self._head[2].get("expect", "").lower() == "100-continue"
            and not self._buffer
            and self._length > 0
        )

    def next_request(self) -> HttpRequest | None:
        """The next whole request, or None until more bytes come.

        Raises:
            BadRequestError: the bytes cannot become a request.
        """
        if self._head is None and not self._read_head():
            return None
        if self._head is None or len(self._buffer) < self._length:
            return None
        method, path, headers = self._head
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._head = None
        return HttpRequest(method, path, headers, body)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > LONGEST_HEAD:
                raise BadRequestError("the request head is too long")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequestError("the request line is not HTTP/1.x")
        headers = dict(_header(line) for line in lines[1:])
        self._length = _body_length(headers)
        self._head = (parts[0], parts[1].split("?")[0], headers)
        return True


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise BadRequestError("a header line has no colon")
    return name.strip().lower(), value.strip()


def _body_length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequestError("request bodies need a Content-Length")
    text = headers.get("content-length", "0")
    if not text.isascii() or not text.isdigit() or int(text) > LONGEST_BODY:
        raise BadRequestError("Content-Length is not a usable number")
    return int(text)


def head(status: int, headers: Sequence[tuple[str, str]]) -> bytes:
    """The head of a response."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def response(status: int, body: bytes, kind: str = "application/json", extra: Sequence[tuple[str, str]] = ()) -> bytes:
    """A whole response."""
    return head(status, [("Content-Type", kind), ("Content-Length", str(len(body))), *extra]) + body


STREAM_HEAD = head(
    200,
    [
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("Cache-Control", "no-cache"),
        ("Transfer-Encoding", "chunked"),
    ],
)
"""The head of a streamed answer."""

LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
