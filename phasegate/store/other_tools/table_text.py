"""Tables as text: rows of fields, and numbers as a table may write them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from phasegate.store.other_tools.result import UnreadableResultError, shown

_NUMBER = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


def table_rows(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) for every row that is not blank.

    Raises:
        UnreadableResultError: it is no table that can be read.
    """
    table = csv.reader(io.StringIO(text), strict=True)
    while True:
        try:
            fields = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            raise UnreadableResultError(f"{source}: line {table.line_num}: not readable as CSV: {error}") from None
        if any(field.strip() for field in fields):
            yield table.line_num, fields


def table_number(text: str, where: str) -> float:
    """A number with a decimal point: no separators between digits, no digits of other scripts.

    Raises:
        UnreadableResultError: anything else.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise UnreadableResultError(
            f"{where}: the value {shown(text)} is not a number", "write it with digits 0-9 and a decimal point"
        )
    return float(text)
