"""The live line while measuring: which workload, which request, running median. Silent where nobody watches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from phasegate.showing import shown
from phasegate.units import format_seconds

_NO_CAPTURE = contextlib.nullcontext


@dataclass
class LiveLine:
    """Writes one line below the cursor and puts the cursor back where it was.

    Attributes:
        write: takes control sequences and text and shows them at once.
        column: tells the cursor's column, from 0, in the line that the live line must not disturb.
        enabled: False makes every call do nothing.
    """

    write: Callable[[str], None]
    column: Callable[[], int]
    enabled: bool

    @classmethod
    def for_pytest(cls, config: pytest.Config) -> LiveLine:
        """The live line below pytest's own progress line."""
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty:
            return cls(print, lambda: 0, enabled=False)
        writer = reporter._tw
        capture: Any = config.pluginmanager.getplugin("capturemanager")

        def write(text: str) -> None:
            shown = capture.global_and_fixture_disabled() if capture is not None else _NO_CAPTURE()
            with shown:
                writer._file.write(text)
                writer._file.flush()

        return cls(write, lambda: int(writer.width_of_current_line), enabled=True)

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:
        """Show how far a workload has come."""
        self.say(f"measuring {workload}: request {done} of {planned}, TTFT p50 {format_seconds(ttft_p50)}")

    def say(self, text: str) -> None:
        """Show a text in place of the former one."""
        if self.enabled:
            # Down one line (which scrolls where the screen ends), text, back up to where pytest writes on.
            self.write(f"\n\x1b[2K  {shown(text)}\x1b[1A\x1b[{self.column() + 1}G")

    def clear(self) -> None:
        """Remove the line."""
        if self.enabled:
            self.write(f"\n\x1b[2K\x1b[1A\x1b[{self.column() + 1}G")
