"""One request and its answer while they are on the wire: moments, raw bytes, and how it ended.

A read costs two appends and the framing check, no task switch. The one future is resolved once, at the
end. Whatever happens, an exchange ends exactly once, with an `Ending` of its own; later news is ignored.
"""

from __future__ import annotations

import asyncio
import errno
import math
import os
from collections.abc import Callable
from time import monotonic

from phasegate.core.timeline import Ending
from phasegate.load.framing import ResponseEnd, UnreadableResponseError


class Exchange:
    """What the reading side of one connection writes into."""

    __slots__ = (
        "_framing",
        "_idle",
        "_on_over",
        "_timer",
        "_total",
        "arrivals",
        "detail",
        "done",
        "ended_at",
        "ending",
        "last",
        "pieces",
        "sent",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        idle_timeout: float | None,
        timeout: float | None,
        on_over: Callable[[Exchange], None],
    ) -> None:
        self.arrivals: list[float] = []
        self.pieces: list[bytes] = []
        self.sent: float | None = None
        self.last = 0.0
        self.ending: Ending | None = None
        self.ended_at = 0.0
        self.detail = ""
        self.done: asyncio.Future[None] = loop.create_future()
        self._framing = ResponseEnd()
        self._idle = math.inf if idle_timeout is None else idle_timeout
        self._total = math.inf if timeout is None else timeout
        self._on_over = on_over
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The request's headers go to the socket now."""
        self.sent = self.last = monotonic()

    def watch(self, before_verdict: Callable[[], None] | None) -> None:
        """Start the deadlines. ``before_verdict`` reads what has already arrived: a busy loop is no silence."""
        if self.ending is not None or self.sent is None:
            return
        self._arm(self.sent, before_verdict)

    def received(self, at: float, data: bytes) -> None:
        """Bytes of the answer, and the moment they came."""
        if self.ending is not None:
            return
        self.last = at
        self.arrivals.append(at)
        self.pieces.append(data)
        try:
            if self._framing.feed(data):
                self.end(Ending.EOF, at)
        except UnreadableResponseError as reason:
            self.end(Ending.PROTOCOL, at, str(reason))

    def closed(self, at: float) -> None:
        """The peer will send no more."""
        if self.ending is not None or self._was_over():
            return
        if self._framing.until_close:
            self.end(Ending.EOF, at)
        else:
            where = "inside the answer" if self.pieces else "before any answer"
            self.end(Ending.INCOMPLETE, at, f"the server closed the connection {where}")

    def lost(self, at: float, error: BaseException | None) -> None:
        """The connection broke."""
        if self.ending is not None or self._was_over():
            return
        where = "inside the answer" if self.pieces else "before any answer"
        ending = Ending.RESET if isinstance(error, ConnectionResetError) else Ending.INCOMPLETE
        self.end(ending, at, f"connection lost {where}: {describe(error)}")

    def end(self, ending: Ending, at: float, detail: str = "") -> None:
        """Close the books, once."""
        if self.ending is not None:
            return
        self.ending = ending
        self.ended_at = at
        self.detail = detail
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_over(self)
        if not self.done.done():
            self.done.set_result(None)

    def _was_over(self) -> bool:
        """Look closely at what has been read: whether it was complete, or unreadable, all along."""
        try:
            if self._framing.catch_up():
                self.end(Ending.EOF, self.last)
        except UnreadableResponseError as reason:
            self.end(Ending.PROTOCOL, self.last, str(reason))
        return self.ending is not None

    def _arm(self, now: float, before_verdict: Callable[[], None] | None) -> None:
        assert self.sent is not None
        due = min(self.last + self._idle, self.sent + self._total)
        if due < math.inf:
            delay = max(due - now, 0.0)
            self._timer = self.done.get_loop().call_later(delay, self._check, before_verdict)

    def _check(self, before_verdict: Callable[[], None] | None) -> None:
        """A deadline may have passed. Nothing is re-armed per read; the timer looks when it fires."""
        if before_verdict is not None:
            before_verdict()
        if self.ending is not None or self.sent is None:
            return
        now = monotonic()
        if now < self.sent + self._total and now < self.last + self._idle:
            self._arm(now, before_verdict)
        elif self._was_over():
            return
        elif now >= self.sent + self._total:
            self.end(Ending.TOTAL_TIMEOUT, now, f"no end within {self._total:g} s of the send")
        else:
            self.end(Ending.IDLE_TIMEOUT, now, f"no byte for {self._idle:g} s")


def describe(error: BaseException | None) -> str:
    """A transport error in its own words, without what could be secret: no request, no headers."""
    if error is None:
        return "closed"
    if isinstance(error, OSError) and error.errno and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
