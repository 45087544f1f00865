"""A table of rich as plain lines, for a terminal that somebody else writes to."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table


def render_table(table: Table, width: int, *, colour: bool) -> list[str]:
    """The table's lines, as wide as the screen at most."""
    buffer = io.StringIO()
    _console(buffer, width, colour=colour).print(table)
    return [line.rstrip() for line in buffer.getvalue().splitlines() if line.strip()]


def _console(buffer: io.StringIO, width: int, *, colour: bool) -> Console:
    return Console(file=buffer, width=width, force_terminal=colour, no_color=not colour, highlight=False)
