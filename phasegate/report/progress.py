"""How far a run has come: a live line on a terminal, a line a minute in a log.

Both write to the terminal itself, past pytest's capture, and never fail a run that cannot be written of.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

import pytest

from phasegate.core.showing import shown
from phasegate.core.units import format_seconds
from phasegate.load.traffic import Traffic

EVERY = 60.0
"""Seconds after which a log gets its next line: CI services end a job that says nothing for some minutes."""

FIRST_AFTER = 0.9
"""Share of that after which the next finished request brings the line, so that nothing has to interrupt a request."""

Write = Callable[[str], None]


class Progress(Protocol):
    """Shows how far a run has come."""

    @property
    def shows_ttft(self) -> bool:
        """Whether it shows the running median of TTFT."""

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:
        """Told of every request as it ends."""

    def say(self, text: str) -> None:
        """Told what begins."""

    def clear(self) -> None:
        """Leave the terminal to pytest."""

    def close(self) -> None:
        """Show nothing more."""


def progress_of(config: pytest.Config, traffic: Traffic, plan: Callable[[], str | None]) -> Progress:
    """The progress that suits the terminal of a pytest run.

    Args:
        traffic: of the run; tells what time has passed and what is left.
        plan: the plan in one line, as soon as it is known.
    """
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if reporter is None:
        return LogLines(lambda _: None, traffic, plan)
    with capture.global_and_fixture_disabled() if capture is not None else contextlib.nullcontext():
        write, close = _past_capture(reporter._tw._file)
    if reporter.isatty:
        return LiveLine(write, lambda: int(reporter._tw.width_of_current_line), reporter._tw.fullwidth, traffic, close)

    def line(text: str) -> None:
        write(f"{chr(10) if reporter._tw.width_of_current_line else ''}{text}\n")
        if reporter.verbosity == 0:
            reporter.currentfspath = None  # so that the letters that follow stand behind their file's name again

    return LogLines(line, traffic, plan, close)


def _past_capture(file: Any) -> tuple[Write, Callable[[], None]]:
    """How to write to the file behind pytest's capture, and how to end it."""
    try:
        place = os.dup(file.fileno())
    except (AttributeError, OSError, ValueError):
        return lambda text: _print(file, text), lambda: None
    encoding = getattr(file, "encoding", None) or "utf-8"

    def write(text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(place, text.encode(encoding, "replace"))

    def close() -> None:
        with contextlib.suppress(OSError):
            os.close(place)

    return write, close


def _print(file: Any, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        file.write(text)
        file.flush()


def _times(traffic: Traffic) -> str:
    """``2 min 5 s so far, about 3 min left``."""
    ahead, left = traffic.seconds_ahead, traffic.time_left
    known = [one for one in (ahead, left) if one is not None]
    said = f"{clock(traffic.elapsed)} so far"
    return f"{said}, about {clock(min(known))} left" if known else said


def clock(seconds: float) -> str:
    """Minutes and whole seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@dataclass
class LiveLine:
    """Writes one line below the cursor and puts the cursor back where it was.

    Attributes:
        write: takes control sequences and text and shows them at once.
        column: tells the cursor's column, from 0, in the line that the live line must not disturb.
        width: of the terminal; longer texts are cut, since a second line would stay.
        traffic: of the run.
        end: called at the end.
    """

    write: Write
    column: Callable[[], int]
    width: int
    traffic: Traffic
    end: Callable[[], None] = lambda: None
    shows_ttft: bool = True
    _shown: bool = False

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:
        """Show how far a workload has come."""
        self.say(f"measuring {workload}: request {done} of {planned}, TTFT p50 {format_seconds(ttft_p50)}")

    def say(self, text: str) -> None:
        """Show a text in place of the former one."""
        line = shown(f"{text} ({_times(self.traffic)})")[: max(10, self.width - 3)]
        # Down one line (which scrolls where the screen ends), text, back up to where pytest writes on.
        self.write(f"\n\x1b[2K  {line}\x1b[1A\x1b[{self.column() + 1}G")
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self.write(f"\n\x1b[2K\x1b[1A\x1b[{self.column() + 1}G")
            self._shown = False

    def close(self) -> None:
        """Remove the line for good."""
        self.clear()
        self.end()


@dataclass
class LogLines:
    """Writes the plan as soon as it is known, and then a line a minute while something is measured.

    Attributes:
        write: takes one line and shows it at once.
        traffic: of the run.
        plan: the plan in one line, or None while it is not known.
        end: called at the end.
        every: seconds between two lines at most.
    """

    write: Write
    traffic: Traffic
    plan: Callable[[], str | None]
    end: Callable[[], None] = lambda: None
    every: float = EVERY
    shows_ttft: bool = False
    _doing: str = "starting"
    _planned: bool = False
    _written: float = field(default_factory=monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        threading.Thread(target=self._watch, name="phasegate-progress", daemon=True).start()

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:
        """Remember how far a workload has come, and write it where it is time."""
        del ttft_p50
        self._doing = f"{workload}: request {done} of {planned}"
        self._write_when(self.every * FIRST_AFTER)

    def say(self, text: str) -> None:
        """Remember what begins, and write it where it is time."""
        self._doing = text
        self._write_when(self.every * FIRST_AFTER)

    def clear(self) -> None:
        """A line of a log stays; the plan may be known by now."""
        self._write_plan()

    def close(self) -> None:
        """Write nothing more."""
        self._write_plan()
        self._closed.set()
        with self._lock:
            self.end()

    def _write_plan(self) -> None:
        if self._planned or self._closed.is_set():
            return
        line = self.plan()
        if line is not None:
            self._planned = True
            self._write(line)

    def _write_when(self, seconds: float) -> None:
        self._write_plan()
        if monotonic() - self._written >= seconds:
            self._write(f"{self._doing}; {_times(self.traffic)}")

    def _write(self, line: str) -> None:
        with self._lock:
            if not self._closed.is_set():
                self.write(shown(line))
                self._written = monotonic()

    def _watch(self) -> None:
        """Write where nothing else has: one request, or the start of an engine, may take minutes."""
        while not self._closed.wait(max(0.1, self._written + self.every - monotonic())):
            if monotonic() - self._written >= self.every:
                self._write(f"{self._doing}; {_times(self.traffic)}")
