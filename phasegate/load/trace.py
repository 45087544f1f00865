"""Recorded traces: when requests came and how long they were. Read here, paced by `pacing.replay`.

Three dialects, told apart by their own names for the columns:

* Mooncake (JSONL; the traces in kvcache-ai/Mooncake, FAST25-release): ``timestamp`` in milliseconds,
  ``input_length``, ``output_length``, and ``hash_ids``, which name the prompt's blocks of 512 tokens; equal ids
  stand for equal blocks behind equal beginnings.
* The same columns as CSV; ``hash_ids`` is then not read.
* Azure (CSV; AzurePublicDataset, "Azure LLM inference trace" 2023 and 2024): ``TIMESTAMP`` as date and time with up to
  seven decimals, ``ContextTokens``, ``GeneratedTokens``.

A timestamp that is a number is in milliseconds, one that is a date and time is what it says; both stand in any dialect.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

from phasegate.core.settings_file import SettingsError
from phasegate.core.units import seconds_from_ms

BLOCK_TOKENS = 512
"""Tokens of one Mooncake block (Qin et al., Mooncake, FAST '25, section 4)."""

Columns = tuple[str, str, str]

COLUMNS: Mapping[str, Columns] = {
    "Mooncake": ("timestamp", "input_length", "output_length"),
    "Azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
}
"""Dialect -> its names for moment, prompt tokens and answer tokens."""

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?")


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace.

    Attributes:
        at: when it came, in seconds; only differences mean anything.
        input_tokens, output_tokens: its lengths, at least 1.
        blocks: names of the prompt's blocks; empty where the trace does not tell.
    """

    at: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace in order of time.

    Attributes:
        source: the file's name, for messages and reports.
        dialect: a key of `COLUMNS`.
        requests: at least one.
    """

    source: str
    dialect: str
    requests: tuple[TraceRequest, ...]


def read_trace(path: Path, at_most: int | None = None) -> Trace:
    """The trace in a file; of a long one only the first ``at_most`` rows.

    Raises:
        SettingsError: one line with the file, the line and what is wrong there.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return parse_trace(lines, str(path), at_most)
    except OSError as error:
        raise SettingsError(f"{path}: cannot read the trace: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not a text file in UTF-8; give a trace as JSONL or CSV") from None


def parse_trace(lines: Iterable[str], source: str, at_most: int | None = None) -> Trace:
    """The trace in some lines of text; see `read_trace`."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise SettingsError(f"{source}: the trace is empty")
    rows = _json_rows(first, numbered, source) if first[1].lstrip().startswith("{") else _csv_rows(first, numbered)
    dialect, requests = "", []
    for number, row in islice(rows, at_most):
        where = f"{source}:{number}"
        dialect = dialect or _dialect_of(row, where)
        requests.append(_request(row, COLUMNS[dialect], where))
    if not requests:
        raise SettingsError(f"{source}: the trace has a heading and no request")
    return Trace(source, dialect, tuple(sorted(requests, key=lambda one: one.at)))


Numbered = Iterator[tuple[int, str]]


def _json_rows(first: tuple[int, str], rest: Numbered, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in _chained(first, rest):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise SettingsError(f"{source}:{number}: not JSON ({error.msg}); every line is one object") from None
        if not isinstance(row, dict):
            raise SettingsError(f"{source}:{number}: {line.strip()[:40]!r} is not an object; every line is one")
        yield number, row


def _csv_rows(first: tuple[int, str], rest: Numbered) -> Iterator[tuple[int, Mapping[str, Any]]]:
    names = [name.strip() for name in next(csv.reader([first[1]]))]
    for number, line in rest:
        yield number, dict(zip(names, (cell.strip() for cell in next(csv.reader([line]))), strict=False))


def _chained(first: tuple[int, str], rest: Numbered) -> Numbered:
    yield first
    yield from rest


def _dialect_of(row: Mapping[str, Any], where: str) -> str:
    for dialect, columns in COLUMNS.items():
        if columns[0] in row:
            return dialect
    wanted = " or ".join(", ".join(columns) for columns in COLUMNS.values())
    raise SettingsError(f"{where}: a trace has the columns {wanted}; this one has {', '.join(map(str, row))}")


def _request(row: Mapping[str, Any], columns: Columns, where: str) -> TraceRequest:
    for name in columns:
        if row.get(name) in (None, ""):
            raise SettingsError(f"{where}: {name} is missing; every request needs {', '.join(columns)}")
    at, n_in, n_out = columns
    return TraceRequest(
        at=_moment(row[at], f"{where}: {at}"),
        input_tokens=_tokens(row[n_in], f"{where}: {n_in}"),
        output_tokens=_tokens(row[n_out], f"{where}: {n_out}"),
        blocks=_blocks(row.get("hash_ids"), where),
    )


def _moment(value: Any, where: str) -> float:
    """Seconds of a number of milliseconds, or of a date and time."""
    found = _DATE_TIME.fullmatch(str(value).strip())
    try:
        if found is None:
            seconds = seconds_from_ms(float(value))
        else:
            day, clock, fraction, zone = found.groups()
            # Python 3.10 reads neither seven decimals nor "Z".
            moment = datetime.fromisoformat(f"{day} {clock}{_zone(zone)}")
            seconds = moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp() + float(fraction or 0)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise SettingsError(f"{where} is {value!r}; it must be milliseconds or a date and time")
    return seconds


def _zone(zone: str | None) -> str:
    if zone in (None, "Z"):
        return "+00:00"
    assert zone is not None
    return zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"


def _tokens(value: Any, where: str) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not 1 <= number < math.inf or not number.is_integer():
        raise SettingsError(f"{where} is {value!r}; it must be a whole number of tokens of at least 1")
    return int(number)


def _blocks(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        raise SettingsError(f"{where}: hash_ids must be a list of whole numbers")
    return tuple(value)
