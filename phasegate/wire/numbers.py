"""Values from strangers: what a server may say where a count, a reading or a text belongs, and what of it is one."""

from __future__ import annotations

import re

LARGEST_COUNT = 10**9
"""No prompt and no answer is longer, in tokens; a larger number is noise, not a count."""


LARGEST_READING = 1e15
"""No timing, rate or count that a server reports of one request is larger."""

_HALF_PAIR = re.compile("[\ud800-\udfff]")


def count(value: object) -> int | None:
    """A count of tokens, or None for anything else: a boolean, text, a fraction, below 0, absurdly large."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= LARGEST_COUNT else None


def length(value: object) -> int:
    """Number of entries of a list; 0 for anything that is not a list."""
    return len(value) if isinstance(value, list) else 0


def readings(value: object) -> dict[str, float]:
    """The finite, believable numbers of an object, by their names; empty for anything else."""
    if not isinstance(value, dict):
        return {}
    return {
        name: number
        for name, number in value.items()
        if name.isascii() and not isinstance(number, bool) and _is_reading(number)
    }


def _is_reading(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= LARGEST_READING


def writable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can hold and no file can, as U+FFFD."""
    return text if text.isascii() else _HALF_PAIR.sub("\ufffd", text)
