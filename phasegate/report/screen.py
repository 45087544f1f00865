"""The terminal, for texts that came from elsewhere: names and words of servers and files are shown and never obeyed.

Markup is off: what a text says in square brackets is text. Styles are given as such, on texts of our own.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from phasegate.core.showing import shown


class Screen(Console):
    """A console of rich that shows every text as it is, without what would steer a terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, **options}, markup=False, emoji=False)

    def render_str(self, text: str, *more: Any, **options: Any) -> Text:
        """A text, or a cell of a table, as rich draws it."""
        return super().render_str(shown(text, lines=True), *more, **options)


class Drawn(str):
    """A line that was drawn by a `Screen`: its colours are ours."""

    __slots__ = ()


class Terminal:
    """pytest's terminal, or another writer of lines; all but `Drawn` lines are shown and never obeyed."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def write_line(self, line: str, **markup: bool) -> None:
        """One line, styled as a whole."""
        self._terminal.write_line(line if isinstance(line, Drawn) else shown(line), **markup)

    def write(self, text: str, **markup: bool) -> None:
        """A part of a line."""
        self._terminal.write(shown(text), **markup)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._terminal, name)
