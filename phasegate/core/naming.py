"""Names that become a part of a path: one rule for all of them."""

from __future__ import annotations

LONGEST = 100
"""Bytes; file systems allow 255, and a suffix, a number or a mark may be added."""

_APART = '/\\:*?"<>|'
"""What separates parts of a path, or is no part of a name, on one system or another."""


def path_name(text: str, source: str) -> str:
    """The text, if it names one file or folder inside another and nothing else on every system.

    Args:
        text: a label, an id, a workload's name.
        source: where it came from, for the message.

    Raises:
        ValueError: one line that says what is wrong with it and what would do.
    """
    problem = _problem(text)
    if problem is not None:
        raise ValueError(
            f"{source} is {text[:LONGEST]!r}, which {problem}; it becomes a part of a path, so write letters, digits, "
            "dots, dashes and underscores, such as v1.2"
        )
    return text


def _problem(text: str) -> str | None:
    if not text:
        return "is empty"
    apart = next((mark for mark in text if mark in _APART), None)
    if apart is not None:
        return f"has {apart!r} in it"
    if not text.isprintable():
        return "has a character in it that does not show"
    if text[0] in ".~- ":
        return f"begins with {text[0]!r}"
    if text[-1] in ". ":
        return f"ends with {text[-1]!r}"
    return f"is longer than {LONGEST} bytes" if len(text.encode()) > LONGEST else None
