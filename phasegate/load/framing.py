"""Where one HTTP/1.1 response ends, found while its bytes arrive and at the price of a few comparisons.

This is not a parser. It hands nothing out, keeps no body and judges only what decides the end: the head's
framing fields, and the sizes of chunks. Everything else is read afterwards from the recorded bytes, so
that understanding one stream never delays the time stamp of another. Rules: RFC 9112, section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_HEAD = 65536
"""Bytes of a response head; the common limit of clients is 64 KiB, more is not an answer worth waiting for."""

MAX_SIZE_LINE = 4096
"""Bytes of a chunk-size line with its extensions, before it counts as noise."""


class UnreadableResponseError(Exception):
    """The bytes are not an HTTP/1.1 response whose end can be known."""


class ResponseEnd:
    """Follows one response and knows when it is complete."""

    __slots__ = ("_held", "_in_trailers", "_need", "_pending", "feed", "head_seen", "until_close")

    def __init__(self) -> None:
        self.feed: Callable[[bytes], bool] = self._feed_head
        """Takes the next bytes; True once the response is complete. Raises UnreadableResponseError."""
        self.head_seen = False
        self.until_close = False
        """True when only the closing of the connection ends the body."""
        self._held = b""
        self._need = 0
        self._in_trailers = False
        self._pending: list[bytes] = []

    def catch_up(self) -> bool:
        """Follow what has only been looked at so far: call when the reads stop without an end. As `feed`."""
        waiting, self._pending = self._pending, []
        return bool(waiting) and self._follow_chunks(b"".join(waiting))

    def _feed_head(self, data: bytes) -> bool:
        held = self._held + data
        while True:
            start = len(held) - len(held.lstrip(b"\r\n"))
            end = held.find(b"\r\n\r\n", start)
            if end < 0:
                if len(held) > MAX_HEAD or not b"HTTP/1.".startswith(held[start : start + 7]):
                    raise UnreadableResponseError("the answer does not begin like an HTTP/1.1 response")
                self._held = held
                return False
            head, held = held[start:end], held[end + 4 :]
            status = _status_of(head)
            if status >= 200:
                break
        self._held = b""
        self.head_seen = True
        return self._begin_body(status, head, held)

    def _begin_body(self, status: int, head: bytes, rest: bytes) -> bool:
        if status in (204, 304):
            return True
        fields = _framing_fields(head)
        if b"transfer-encoding" in fields:
            if not fields[b"transfer-encoding"].endswith(b"chunked"):
                return self._until_close()
            self.feed = self._feed_chunked
        elif b"content-length" in fields:
            text = fields[b"content-length"]
            if not text.isdigit():
                raise UnreadableResponseError(f"content-length {text[:40].decode('latin-1')!r} is not a number")
            self._need = int(text)
            self.feed = self._feed_length
        else:
            return self._until_close()
        return self.feed(rest)

    def _until_close(self) -> bool:
        self.until_close = True
        self.feed = _never
        return False

    def _feed_length(self, data: bytes) -> bool:
        self._need -= len(data)
        return self._need <= 0

    def _feed_chunked(self, data: bytes) -> bool:
        # A chunked body ends with an empty line, so a read that does not cannot be the last one. Its chunks are
        # followed when one comes that can; for servers that end events with LF that is once, at the end.
        self._pending.append(data)
        if data[-4:] != b"\r\n\r\n" and len(data) >= 4:
            return False
        return self.catch_up()

    def _follow_chunks(self, data: bytes) -> bool:
        if self._held:
            data = self._held + data
            self._held = b""
        size = len(data)
        position = self._need
        while position < size:
            line_end = data.find(b"\n", position, position + MAX_SIZE_LINE)
            if line_end < 0:
                if size - position >= MAX_SIZE_LINE:
                    raise UnreadableResponseError("a chunk-size line does not end")
                self._held = data[position:]
                self._need = 0
                return False
            line = data[position:line_end]
            position = line_end + 1
            if self._in_trailers:
                if line in (b"", b"\r"):
                    return True
                continue
            length = _chunk_size(line)
            if length == 0:
                self._in_trailers = True
            else:
                position += length + 2
        self._need = position - size
        return False


def _never(data: bytes) -> bool:  # noqa: ARG001
    """A body without a stated end is over when the connection is."""
    return False


def _status_of(head: bytes) -> int:
    version, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not code.isdigit() or int(code) < 100:
        line = head[:60].decode("latin-1")
        raise UnreadableResponseError(f"{line!r} is not the status line of an HTTP/1.1 response")
    return int(code)


def _framing_fields(head: bytes) -> dict[bytes, bytes]:
    found = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        found[name.strip().lower()] = value.strip().lower()
    return found


def _chunk_size(line: bytes) -> int:
    digits = line.split(b";", 1)[0].strip()
    try:
        length = int(digits, 16)
    except ValueError:
        length = -1
    if length < 0:
        raise UnreadableResponseError(f"{line[:40].decode('latin-1')!r} is not a chunk size")
    return length
