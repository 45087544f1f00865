"""Measurements as CSV: ``session,workload,metric,value`` with one row a request, and ``block`` for paired runs.

Without a column ``unit``, values are in the metric's own unit, seconds for latencies, and nothing is guessed; with it,
every row says its own. A column ``token_source`` says who counted the tokens of metrics per token. The word ``failed``
in place of a value stands for a request that ended as an error, so that error rates can be judged from a table too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phasegate.core.session import Measurement, Session
from phasegate.gate.facts import MetricFacts, facts_of, known_metrics
from phasegate.store.other_tools.gaps import check_orders
from phasegate.store.other_tools.result import (
    LONGEST_NAME,
    REPORT_HELP,
    REPORT_REMEDY,
    UnreadableResultError,
    WrongUsageError,
    positive,
    shown,
    span,
)
from phasegate.store.other_tools.runs import Remark
from phasegate.store.other_tools.table_text import table_number, table_rows

COLUMNS = ("session", "workload", "metric", "value")
OPTIONAL = ("block", "unit", "token_source")
FAILED = "failed"

REPORT_COLUMNS = ("kind", "verdict", "now_n")
"""Columns by which a report of ours is recognised: a table as well, but one of verdicts."""

_SECONDS_PER = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0,
    "milliseconds": 1e-3, "microseconds": 1e-6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """What a table holds: its sessions in the order in which they first appear, and what was not read."""

    sessions: tuple[Session, ...]
    remarks: tuple[Remark, ...] = ()


@dataclass(slots=True)
class _Cell:
    """Values of one metric of one workload in one session."""

    facts: MetricFacts
    samples: list[float] = field(default_factory=list)
    failed: int = 0
    source: str | None = None

    def add(self, row: Mapping[str, str], where: str) -> None:
        if row["value"].lower() == FAILED:
            self.failed += 1
            return
        value = table_number(row["value"], where)
        if "unit" in row or self.facts.is_latency:
            self.samples.append(_converted(value, row.get("unit"), self.facts, where))
        else:
            self.samples.append(positive(value, f"{where}: the value"))

    def count_by(self, source: str, where: str) -> None:
        """Take in who counted the tokens, which must be one within a measurement."""
        if self.source not in (None, source):
            said = f"{where}: its tokens were counted by {shown(source)}, those of earlier rows by {shown(self.source)}"
            raise UnreadableResultError(said, "give each its own workload: the two are different units")
        self.source = source


def read(text: str, source: str, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None) -> Table:
    """The table as sessions.

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
    rows = table_rows(text, source)
    _, header = next(rows, (1, []))
    names = _header(header, source, (key, *COLUMNS[1:]))
    found: dict[str, dict[tuple[str, str], _Cell]] = {}
    for number, row in _rows(rows, names, source, (key, *COLUMNS[1:])):
        where = f"{source}: line {number}"
        facts = facts_of(row["metric"], declared)
        if facts is None:
            raise UnreadableResultError(f"{where}: {_unknown(row['metric'], declared)}", _UNKNOWN_REMEDY)
        cell = found.setdefault(row[key], {}).setdefault((row["workload"], facts.name), _Cell(facts))
        cell.add(row, where)
        if row.get("token_source") and "token" in facts.unit:
            cell.count_by(row["token_source"].lower(), where)
    if not found:
        raise UnreadableResultError(f"{source}: no rows below the header; nothing was measured")
    for name, cells in found.items():
        _check_orders(cells, f"{source}: {key} {shown(name)}")
    unread = [name for name in names if name not in (*COLUMNS, *OPTIONAL)]
    remarks = [Remark(source, f"the column {shown(name)} is not read") for name in unread]
    return Table(tuple(_session(name, cells) for name, cells in found.items()), tuple(remarks))


def _header(fields: Sequence[str], source: str, needed: Sequence[str]) -> list[str]:
    """The names of the columns, checked: what is needed is there, nothing twice, and nothing misspelt."""
    names = ["_".join(name.strip().lower().replace("-", " ").split()) for name in fields]
    missing = [name for name in needed if name not in names]
    if missing and all(name in names for name in REPORT_COLUMNS):
        raise UnreadableResultError(f"{source}: {REPORT_HELP}", REPORT_REMEDY)
    if missing == ["block"]:
        said = f"{source}: line 1: the column 'block' is missing, by which --paired reads a table"
        raise WrongUsageError(said, "add it, or leave out --paired")
    if missing:
        said = f"{source}: line 1: the column {missing[0]!r} is missing"
        other = next((mark for mark in (";", "\t") if len(fields) == 1 and mark in fields[0]), None)
        hint = f", separated by commas and not by {other!r}" if other else ""
        raise UnreadableResultError(said, f"the header must hold {','.join(needed)}{hint}")
    for name in names:
        if names.count(name) > 1:
            raise UnreadableResultError(
                f"{source}: line 1: the column {shown(name)} is there twice", "keep one of them"
            )
        near = difflib.get_close_matches(name, OPTIONAL, n=1, cutoff=0.75)
        if name not in (*COLUMNS, *OPTIONAL) and near:
            said = f"{source}: line 1: unknown column {shown(name)}"
            raise UnreadableResultError(said, f"did you mean {near[0]!r}? Rename it, or leave it out")
    return names


def _rows(
    rows: Iterator[tuple[int, list[str]]], names: Sequence[str], source: str, needed: Sequence[str]
) -> Iterator[tuple[int, dict[str, str]]]:
    for line, fields in rows:
        where = f"{source}: line {line}"
        if len(fields) != len(names):
            said = f"{where}: {len(fields)} fields where the header has {len(names)}"
            raise UnreadableResultError(said, "the file may be cut off")
        row = {name: cell.strip() for name, cell in zip(names, fields, strict=True)}
        empty = [name for name in needed if not row[name]]
        if empty:
            raise UnreadableResultError(f"{where}: {empty[0]} is empty")
        long = next((name for name in names if len(row[name]) > LONGEST_NAME and name in (*COLUMNS, *OPTIONAL)), None)
        if long:
            said = f"{where}: {long} has {len(row[long]):,} characters, more than the {LONGEST_NAME} that can be shown"
            raise UnreadableResultError(said, "shorten it")
        yield line, row


def _converted(value: float, unit: str | None, facts: MetricFacts, where: str) -> float:
    """The value in the metric's own unit, by the unit of its row."""
    own = facts.unit
    if unit is None or unit.lower() == own.lower():
        factor = 1.0
    else:
        ours, theirs = _parts(own), _parts(unit)
        if ours is None or theirs is None or theirs[1] not in ("", ours[1]):
            said = f"{where}: the unit is {shown(unit)}, and {facts.name} is in {own}"
            wanted = f"give {own}" + (", or a time in s, ms, us or ns" if ours else "")
            raise UnreadableResultError(said, wanted)
        factor = theirs[0] / ours[0]
    if facts.is_latency:
        return span(value, f"{where}: the value", factor)
    return positive(value, f"{where}: the value") * factor


def _parts(unit: str) -> tuple[float, str] | None:
    """Seconds of a unit of time, and what it is counted by: ``ms/token`` is (0.001, token). None for other units."""
    time, _, by = unit.lower().partition("/")
    factor = _SECONDS_PER.get(time.strip())
    return None if factor is None else (factor, by.strip())


_UNKNOWN_REMEDY = "correct it; others can be declared under metrics in a policy file"


def _unknown(metric: str, declared: Mapping[str, MetricFacts] | None) -> str:
    if metric.endswith("_ms") and facts_of(metric.removesuffix("_ms"), declared):
        name = metric.removesuffix("_ms")
        return f"{shown(metric)} is in milliseconds; give {name} in seconds, or with a column 'unit' that says ms"
    return f"unknown metric {shown(metric)}; known: {', '.join(known_metrics(declared))}"


def _check_orders(cells: Mapping[tuple[str, str], _Cell], where: str) -> None:
    for (workload, metric), cell in cells.items():
        whole = cells.get((workload, "e2el"))
        if metric == "ttft" and whole is not None and cell.failed == whole.failed:
            check_orders(f"{where}: {shown(workload)}", cell.samples, whole.samples)


def _session(name: str, cells: Mapping[tuple[str, str], _Cell]) -> Session:
    measurements = [
        Measurement(
            workload,
            metric,
            tuple(cell.samples),
            cell.facts.phase,
            token_source=cell.source,
            requests=len(cell.samples) + cell.failed,
            failed=cell.failed,
        )
        for (workload, metric), cell in cells.items()
    ]
    return Session(session_id=name, recorded_at="", measurements=tuple(measurements))
