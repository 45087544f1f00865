"""A text that came from elsewhere (a server, a file, a name somebody chose), made harmless where it is shown.

One function for each place: a terminal, Markdown, code in Markdown, a cell of CSV. HTML is escaped by its template.
"""

from __future__ import annotations

import re
import unicodedata

UNSHOWN = "\ufffd"
"""What stands for a character that has no picture of its own."""

_GAP, _GAP_ENTITY = "\u200b", "&#8203;"
"""A character that shows nothing: Markdown finds no mention, link or heading across it."""

_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "&#96;", "*": "&#42;", "~": "&#126;", _GAP: _GAP_ENTITY}
)

_LIVE = re.compile(
    r"""[@$](?=\S) | \# | :(?=//) | \bwww(?=\.) | \b(?:mailto|xmpp)(?=:)  # mention, formula, reference, address
    | \](?=\() | ^\[[^\]]*\](?=:)  # link or picture, and the place that a link names
    | ^[-+](?=\s) | ^\d+(?=[.)]\s)  # list
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What would begin something, together with what follows it; a gap goes in between."""

_FORMULA = re.compile(r"(^|;)(?=[\s\ufffd]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet would read a formula; a semicolon parts cells where a comma parts decimals."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def shown(text: str, *, lines: bool = False) -> str:
    """The text for a terminal, on one line: nothing in it moves the cursor, colours, reorders or hides.

    Args:
        text: anything, also lone surrogates.
        lines: keep line breaks.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or (lines and mark == "\n") else _instead(mark) for mark in text)


def _instead(mark: str) -> str:
    return " " if mark.isspace() or unicodedata.category(mark) in ("Zs", "Zl", "Zp") else UNSHOWN


def in_markdown(text: str) -> str:
    """The text for Markdown, on one line, as text: no tag, mention, reference, link, picture, code or formula."""
    return _LIVE.sub(lambda found: found[0] + _GAP, " ".join(shown(text).split())).translate(_ENTITIES)


def in_markdown_cell(text: str) -> str:
    """As `in_markdown`, for a table: a bar does not end the cell."""
    return in_markdown(text).replace("\\", "&#92;").replace("|", "\\|")


def in_markdown_code(text: str, *, cell: bool = False) -> str:
    """The text as code in Markdown, on one line, whatever backticks it has; with ``cell`` for a table."""
    text = " ".join(shown(text).split())
    if not text or (cell and ("|" in text or "\\" in text)):
        # A table is parted at bars before code is looked for, so that such a text could leave the code.
        return in_markdown_cell(text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def in_csv(cell: str) -> str:
    """A cell of CSV that no spreadsheet runs as a formula: it gets an apostrophe; numbers stay numbers."""
    cell = shown(cell, lines=True)
    return cell if _NUMBER.fullmatch(cell) else _FORMULA.sub(r"\1'", cell)
