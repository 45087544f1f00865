"""A table of rich as plain lines, for a terminal that somebody else writes to."""

from __future__ import annotations

import io

from rich.table import Table

from phasegate.report.screen import Drawn, Screen


def render_table(table: Table, width: int, *, colour: bool) -> list[Drawn]:
    """The table's lines, as wide as the screen at most."""
    buffer = io.StringIO()
    _console(buffer, width, colour=colour).print(table)
    return [Drawn(line.rstrip()) for line in buffer.getvalue().splitlines() if line.strip()]


def _console(buffer: io.StringIO, width: int, *, colour: bool) -> Screen:
    return Screen(file=buffer, width=width, force_terminal=colour, no_color=not colour)
