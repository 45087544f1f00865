"""A live line of a running load, written from inside the measured window and therefore rarely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from phasegate.core.request import Request
from phasegate.core.timeline import Recording
from phasegate.core.units import format_seconds
from phasegate.stats.percentile import nearest_rank

TELL_EVERY = 0.2
"""Seconds between two changes of the line."""

Say = Callable[[str], None]


class LoadWatcher:
    """Turns ended requests into a live line, rarely: requests in flight, running percentiles, errors."""

    def __init__(self, say: Say, level: int, requests: Sequence[Request], *, doing: str = "measuring") -> None:
        self._say = say
        self._doing = doing
        self._level = level
        self._planned = len(requests)
        self._done = 0
        self._failed = 0
        self._first_bytes: list[float] = []
        self._told = 0.0

    def __call__(self, _place: int, recording: Recording) -> None:
        """Called inside the measured window, so nothing is decoded: the first byte stands for the first token."""
        self._done += 1
        if recording.http_status != 200 or not recording.reads or recording.sent is None:
            self._failed += 1
        else:
            self._first_bytes.append(recording.reads[0].at - recording.sent)
        now = monotonic()
        if now - self._told >= TELL_EVERY:
            self._told = now
            self._say(self._line())

    def _line(self) -> str:
        in_flight = min(self._level, self._planned - self._done)
        running = "-"
        if self._first_bytes:
            p50, p95 = (format_seconds(nearest_rank(self._first_bytes, percent)) for percent in (50, 95))
            running = f"{p50} / {p95}"
        return (
            f"{self._doing} {self._level} at a time: {self._done} of {self._planned} done, {in_flight} in flight, "
            f"first byte p50 / p95 {running}, {self._failed} failed"
        )
