"""Server-sent events out of bytes, each with the moment it was complete.

No I/O and no clock: `feed` takes the bytes of one network read and the moment they came. The parser cuts
the bytes into lines first and decodes UTF-8 only when an event is complete, so a read may end anywhere:
inside a character, between CR and LF, inside the byte order mark. Rules: WHATWG HTML, "Server-sent events",
section "Interpreting an event stream", with one difference, `end`.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event of the stream.

    Attributes:
        type: its ``event:`` field; ``"message"`` where it has none.
        data: its ``data:`` lines, joined by line feeds; bytes that are not UTF-8 become U+FFFD.
        at: the moment of the read that brought the blank line which ends it.
    """

    type: str
    data: str
    at: float


class EventParser:
    """Follows one response body."""

    __slots__ = ("_after_cr", "_at", "_data", "_line", "_started", "_type")

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of a line whose end has not come
        self._after_cr = False  # the last read ended in CR: an LF that follows belongs to it
        self._started = False  # the first line, which may carry a byte order mark, is over
        self._data: list[bytes] = []
        self._type = ""
        self._at = 0.0

    def feed(self, data: bytes, at: float) -> list[Event]:
        """The events that this read completes. Any bytes are accepted; nothing is ever raised."""
        if not data:
            return []
        self._at = at
        if self._after_cr and data[0] == 10:
            data = data[1:]
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        unfinished = lines.pop() if lines and data[-1] not in b"\r\n" else b""
        if lines:
            if self._line:
                lines[0] = b"".join((*self._line, lines[0]))
                self._line = []
            if not self._started:
                self._started = True
                lines[0] = lines[0].removeprefix(_BOM)
        if unfinished:
            self._line.append(unfinished)
        return self._take(lines, at)

    def end(self) -> Event | None:
        """The event that the end of the body left without its blank line, or None.

        The specification throws it away. A measuring client must not: servers end with ``data: [DONE]``
        and one line feed, or with a usage report and none, and the event's last byte did come. It keeps
        the moment of the read that brought that byte. Whether a cut payload is worth anything is for the
        reader of the payload to say. Call it only after the body ended where HTTP says it ends.
        """
        left = b"".join(self._line)
        self._line = []
        self._take([left if self._started else left.removeprefix(_BOM)] if left else [], self._at)
        events = self._take([b""], self._at)
        return events[0] if events else None

    def _take(self, lines: list[bytes], at: float) -> list[Event]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line:
                self._take_rare(line)
            else:
                if self._data:
                    text = b"\n".join(self._data).decode("utf-8", "replace")
                    events.append(Event(self._type or "message", text, at))
                    self._data = []
                self._type = ""
        return events

    def _take_rare(self, line: bytes) -> None:
        """Every line but ``data:`` ones: a type, a comment, or a field that means nothing here."""
        name, _, value = line.partition(b":")
        if name == b"event":
            self._type = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(b"")
