"""Sentences in lines of a screen: no word is cut, since commands and paths are copied from there, and no unit stands
on another line than its number."""

from __future__ import annotations

import re
import textwrap

_UNIT = re.compile(r"(?<=\d) (?=(?:%|us|ms|s|min|ms/token|s/token)(?![\w/]))")

_TIED = "\u00a0"


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text; words longer than a line stand whole on one of their own."""
    lines = textwrap.wrap(_UNIT.sub(_TIED, text), width, break_on_hyphens=False, break_long_words=False)
    return [line.replace(_TIED, " ") for line in lines]
