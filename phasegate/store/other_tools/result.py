"""What all readers share: the errors, one request as a tool recorded it, and typed access to numbers of a file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LARGEST = 1e15
"""No span in any unit of time is longer; what is, is no measurement."""

SHORTEST = 1e-9
"""Seconds: no latency of a server is shorter than a nanosecond; what is, has another unit than it claims."""

LONGEST_NAME = 200
"""Characters of a name that a row of a report can still show."""

_SHOWN = 40
"""Characters of a foreign value that a message shows."""

AGAIN = "give the file as its tool wrote it, or measure again"
"""The remedy for a value that no tool writes."""

REPORT_HELP = "a report of phasegate, which holds verdicts and no measured values"
"""What to say to somebody who hands us a report where sessions are wanted."""

REPORT_REMEDY = "give the sessions it was made from (a run keeps them with --perf-save-sessions DIR)"


class UnreadableResultError(ValueError):
    """A result file that cannot be used. The message is one line that names the file, the place and the remedy.

    Attributes:
        remedy: the part of the message that says what to do.
    """

    def __init__(self, problem: str, remedy: str = AGAIN, *, says_remedy: bool = False) -> None:
        super().__init__(problem if says_remedy else f"{problem}; {remedy}")
        self.remedy = remedy


class WrongUsageError(UnreadableResultError):
    """The path or the option asks for something else than what is there; no result file is at fault."""


def refusal_record(error: Exception) -> dict[str, Any]:
    """What ``--json`` prints of a command that ends as wrong usage: no verdict, the reason, and what to do."""
    remedy = getattr(error, "remedy", "correct what the reason names")
    return {"verdict": None, "reason": str(error), "remedy": remedy}


@dataclass(frozen=True, slots=True)
class Row:
    """One request.

    Attributes:
        failed: whether it ended as an error.
        ttft, tpot, e2el: in seconds; None where the tool has no such value for this request.
        prompt_tokens, answer_tokens: lengths that came back; None where the tool does not say.
    """

    failed: bool = False
    ttft: float | None = None
    tpot: float | None = None
    e2el: float | None = None
    prompt_tokens: float | None = None
    answer_tokens: float | None = None


def shown(value: Any) -> str:
    """A foreign value for a message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def number(value: Any, where: str) -> float | int:
    """A plain number, of whatever size.

    Raises:
        UnreadableResultError: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnreadableResultError(f"{where}: {shown(value)} is not a number")
    return value


def positive(value: Any, where: str) -> float:
    """A measured value of any unit.

    Raises:
        UnreadableResultError: not a number, not finite, or not above 0.
    """
    # A whole number may be too large to be a float at all.
    if not 0 < number(value, where) < LARGEST:
        raise UnreadableResultError(f"{where}: {shown(value)} is no measurement; it must be finite and above 0")
    return float(value)


def span(value: Any, where: str, seconds_per_unit: float = 1.0) -> float:
    """A measured span in seconds, from whatever unit of time the file has.

    Raises:
        UnreadableResultError: not a number, not finite, not above 0, or shorter than a nanosecond.
    """
    seconds = positive(value, where) * seconds_per_unit
    # What a decimal fraction loses on the way to seconds must not decide.
    if seconds < SHORTEST * (1 - 1e-6):
        said = f"{where}: {shown(value)} is {seconds:.1e} s, shorter than a nanosecond"
        raise UnreadableResultError(said, "see which unit it has")
    return seconds


def span_or_none(value: Any, where: str, seconds_per_unit: float = 1.0) -> float | None:
    """A span, or None where the tool has none for this request: no value, or a 0."""
    if value is None or (number(value, where) == 0):
        return None
    return span(value, where, seconds_per_unit)


def count_of(value: Any, where: str) -> int:
    """A number of requests, which some tools write with a decimal point.

    Raises:
        UnreadableResultError: not a whole number of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < LARGEST or value % 1:
        raise UnreadableResultError(f"{where}: {shown(value)} is not a number of requests")
    return int(value)


def length_or_none(value: Any) -> float | None:
    """A length in tokens where the file has a usable one; lengths name a workload and are no measurement."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LARGEST
    return float(value) if usable else None


def middle_of(values: Iterable[float | None]) -> float | None:
    """The median of the values that are known, or None where none is; a few odd ones do not move it."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """The value where it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def number_list(document: Mapping[str, Any], key: str, length: int, source: str) -> list[Any]:
    """A list with one item per request.

    Raises:
        UnreadableResultError: missing, or of another length.
    """
    value = document.get(key)
    if not isinstance(value, list) or len(value) != length:
        raise UnreadableResultError(f"{source}: {key} must be a list of {length} items, one per request")
    return value


def json_lines(text: str, source: str, load: Callable[[str, str], Any]) -> Iterable[tuple[int, Any]]:
    """(line number, document) for every line that is not blank."""
    # Not splitlines(), which also cuts at separators that a generated text may hold.
    for line_number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield line_number, load(line, f"{source}: line {line_number}")
