"""What some answers have that no number shows, in one line each with a witness: other prompts, unknown fields.

`flags` names it at each answer; this says it of many to a reader, with the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phasegate.core.timeline import Timeline

OTHER_LENGTH = "prompt_length_mismatch"

WITNESSES = 3
"""Pairs of lengths that a message names."""

CUT = (
    "the server cuts longer prompts, most likely at its context window: give it a longer one (or lift the limit of the "
    "gateway before it), or ask for shorter prompts"
)
ADDED = (
    "something adds to the prompts on their way (a gateway's system prompt, another chat template), or several models "
    "answer under this name: measure the server behind it"
)


def has_other_prompt(line: Timeline) -> bool:
    """Whether the server counted another prompt length than was written for the request."""
    return line.status == "ok" and OTHER_LENGTH in line.flags


def share_of_other_prompts(lines: Sequence[Timeline]) -> float:
    """Answers to other prompts than were written, over all answers; 0.0 without any answer."""
    answered = sum(line.status == "ok" for line in lines)
    return sum(map(has_other_prompt, lines)) / answered if answered else 0.0


def other_prompt_words(lines: Sequence[Timeline]) -> str | None:
    """Which prompts the server counted otherwise than they were written, and why it likely did; None where none."""
    off = [line for line in lines if has_other_prompt(line)]
    if not off:
        return None
    answered = sum(line.status == "ok" for line in lines)
    pairs = Counter(_lengths(line) for line in off)
    witnesses = "; ".join(f"{told} prompt tokens counted where {due} were sent" for told, due in _witnesses(pairs))
    cut = 2 * sum(told < due for told, due in pairs.elements()) > len(off)
    return f"{len(off)} of {answered} answers are to prompts of another length ({witnesses}): {CUT if cut else ADDED}"


def _witnesses(pairs: Counter[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most frequent pair of each length that was sent, shortest first."""
    by_length: dict[int, tuple[int, int]] = {}
    for pair, _ in pairs.most_common():
        by_length.setdefault(pair[1], pair)
    return [by_length[due] for due in sorted(by_length)[:WITNESSES]]


def lengths_words(line: Timeline) -> str:
    """``514 where 1024 were sent``."""
    told, due = _lengths(line)
    return f"{told} where {due} were sent"


def _lengths(line: Timeline) -> tuple[int, int]:
    return line.prompt_tokens or 0, line.expected.prompt_tokens or 0


def unknown_field_words(lines: Sequence[Timeline]) -> str | None:
    """Which fields held text that is not understood, and what is made of it; None where none did."""
    told = [line for line in lines if line.unnamed_fields]
    if not told:
        return None
    names = ", ".join(dict.fromkeys(name for line in told for name in line.unnamed_fields))
    counted = sum(bool(line.unnamed_text) for line in told)
    made = f"in {counted} it came alone in its chunks and counts as output" if counted else "it came beside other text"
    return f"{len(told)} answers held text in fields that are not understood ({names}): {made}"
