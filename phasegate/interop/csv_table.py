"""Measurements as CSV: ``session,workload,metric,value`` with one row a request, and ``block`` for paired runs.

Values are in the metric's own unit, seconds for latencies; nothing is converted. The word ``failed`` in place of a
value stands for a request that ended as an error, so that error rates can be judged from a table too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from phasegate.gate.facts import MetricFacts, facts_of, known_metrics
from phasegate.interop.result import REPORT_HELP, UnreadableResultError, WrongUsageError, positive
from phasegate.session import Measurement, Session

COLUMNS = ("session", "workload", "metric", "value")
FAILED = "failed"

REPORT_COLUMNS = ("kind", "verdict", "now_n")
"""Columns by which a report of ours is recognised: a table as well, but one of verdicts."""


def read(
    text: str, source: str, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None
) -> list[Session]:
    """The table as sessions, in the order in which they first appear.

    Args:
        text: what the file holds.
        source: the file, for messages.
        paired: take the ``block`` column as the session, so that both sides can be paired by it; a ``session`` column
            is then not needed.
        declared: metrics that a policy names.

    Raises:
        WrongUsageError: ``paired``, and all but the ``block`` column is there.
        UnreadableResultError: one line naming file, line and remedy.
    """
    key = "block" if paired else "session"
    found: dict[str, dict[tuple[str, str], _Cell]] = {}
    for number, row in _rows(text, source, (key, *COLUMNS[1:])):
        where = f"{source}: line {number}"
        facts = facts_of(row["metric"], declared)
        if facts is None:
            raise UnreadableResultError(f"{where}: {_unknown(row['metric'], declared)}")
        cell = found.setdefault(row[key], {}).setdefault((row["workload"], facts.name), _Cell())
        cell.add(row["value"], where)
    if not found:
        raise UnreadableResultError(f"{source}: no rows below the header; nothing was measured")
    return [_session(name, cells, declared) for name, cells in found.items()]


class _Cell:
    """Values of one metric of one workload in one session."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self.failed = 0

    def add(self, word: str, where: str) -> None:
        if word.lower() == FAILED:
            self.failed += 1
            return
        try:
            value = float(word)
        except ValueError:
            raise UnreadableResultError(
                f"{where}: the value {word!r} is not a number (or the word {FAILED!r})"
            ) from None
        self.samples.append(positive(value, f"{where}: the value"))


def _rows(text: str, source: str, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    table = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    header = [name.strip().lower() for name in next(table, [])]
    missing = [name for name in columns if name not in header]
    if missing and all(name in header for name in REPORT_COLUMNS):
        raise UnreadableResultError(f"{source}: {REPORT_HELP}")
    if missing == ["block"]:
        raise WrongUsageError(
            f"{source}: line 1: the column 'block' is missing, by which --paired reads a table; "
            "add it, or leave out --paired"
        )
    if missing:
        said = f"{source}: line 1: the column {missing[0]!r} is missing; the header must hold {','.join(columns)}"
        raise UnreadableResultError(said)
    for fields in table:
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            raise UnreadableResultError(
                f"{source}: line {table.line_num}: {len(fields)} fields where the header has {len(header)}; "
                "the file may be cut off"
            )
        row = {name: field.strip() for name, field in zip(header, fields, strict=True)}
        empty = [name for name in columns if not row[name]]
        if empty:
            raise UnreadableResultError(f"{source}: line {table.line_num}: {empty[0]} is empty")
        yield table.line_num, row


def _unknown(metric: str, declared: Mapping[str, MetricFacts] | None) -> str:
    known = ", ".join(known_metrics(declared))
    if metric.endswith("_ms") and facts_of(metric.removesuffix("_ms"), declared):
        name = metric.removesuffix("_ms")
        return f"{metric!r} is in milliseconds; give {name} in seconds, values of other units are never converted"
    return f"unknown metric {metric!r}; known: {known}; others can be declared under metrics in a policy file"


def _session(name: str, cells: Mapping[tuple[str, str], _Cell], declared: Mapping[str, MetricFacts] | None) -> Session:
    measurements = []
    for (workload, metric), cell in cells.items():
        facts = facts_of(metric, declared)
        assert facts is not None
        sent = len(cell.samples) + cell.failed
        measurements.append(
            Measurement(workload, metric, tuple(cell.samples), facts.phase, requests=sent, failed=cell.failed)
        )
    return Session(session_id=name, recorded_at="", measurements=tuple(measurements))
