"""Numbers from strangers: what a server may say where a count belongs, and what of it is one."""

from __future__ import annotations

LARGEST_COUNT = 10**9
"""No prompt and no answer is longer, in tokens; a larger number is noise, not a count."""


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
