"""What all readers share: one request as a tool recorded it, turned into measurements; and typed access to JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phasegate.gate.facts import facts_of
from phasegate.session import Measurement

LARGEST = 1e15
"""No span in any unit of time is longer; what is, is no measurement."""


REPORT_HELP = (
    "a report of phasegate, which holds verdicts and no measured values; give the sessions it was made from "
    "(a run keeps them with --perf-save-sessions DIR)"
)
"""What to say to somebody who hands us a report where sessions are wanted."""


class UnreadableResultError(ValueError):
    """A result file that cannot be used. The message is one line that names the file, the place and the remedy."""


class WrongUsageError(UnreadableResultError):
    """The path or the option asks for something else than what is there; no result file is at fault."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request.

    Attributes:
        failed: whether it ended as an error.
        ttft, tpot, e2el: in seconds; None where the tool has no such value for this request.
    """

    failed: bool = False
    ttft: float | None = None
    tpot: float | None = None
    e2el: float | None = None


def measurements_of(workload: str, rows: Sequence[Row], *, spec: Mapping[str, Any], source: str) -> list[Measurement]:
    """One measurement for each latency that any request has.

    Args:
        workload: its name.
        rows: all requests sent, failures included.
        spec: what decides what was sent, for the digest.
        source: the file, for messages.

    Raises:
        UnreadableResultError: no request, or a value that is not a positive finite number.
    """
    if not rows:
        raise UnreadableResultError(f"{source}: {workload}: no request in it; nothing was measured")
    failed = sum(1 for row in rows if row.failed)
    found = []
    for metric in ("ttft", "tpot", "e2el"):
        values = [getattr(row, metric) for row in rows if not row.failed and getattr(row, metric) is not None]
        if values or failed == len(rows):
            checked = tuple(positive(value, f"{source}: {workload} {metric}") for value in values)
            found.append(measurement(workload, metric, checked, requests=len(rows), failed=failed, spec=spec))
    return found


def measurement(
    workload: str, metric: str, samples: tuple[float, ...], *, requests: int, failed: int, spec: Mapping[str, Any]
) -> Measurement:
    """A measurement of a known metric."""
    facts = facts_of(metric)
    assert facts is not None
    return Measurement(
        workload=workload,
        metric=facts.name,
        samples=samples,
        phase=facts.phase,
        workload_digest=digest(spec),
        token_source="tool" if facts.unit == "s/token" else None,
        requests=requests,
        failed=failed,
    )


def digest(spec: Mapping[str, Any]) -> str:
    """Eight hexadecimal digits over what decides what was sent; empty where the file says nothing about it."""
    told = {key: value for key, value in spec.items() if value is not None}
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:8] if told else ""


def positive(value: Any, where: str) -> float:
    """A measured span in seconds.

    Raises:
        UnreadableResultError: not a number, not finite, or not above 0.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnreadableResultError(f"{where}: {value!r} is not a number")
    # A whole number may be too large to be a float at all.
    if not 0 < value < LARGEST:
        raise UnreadableResultError(f"{where}: {value!r} is no measurement; it must be finite and above 0")
    return float(value)


def count_of(value: Any, where: str) -> int:
    """A number of requests, which some tools write with a decimal point.

    Raises:
        UnreadableResultError: not a whole number of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < LARGEST or value % 1:
        raise UnreadableResultError(f"{where}: {value!r} is not a number of requests")
    return int(value)


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
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, load(line, f"{source}: line {number}")
