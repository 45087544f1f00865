"""What the server told, as tables for readers: the same head and rows in every report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from phasegate.core.units import format_percent, format_seconds
from phasegate.report.document.model import Document, ServerCounted


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts: the head has one name more than there are columns of values, that of the rows."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def clock_table(document: Document) -> TextTable | None:
    """The server's times beside the client's; parts that no cell has are left out. None where it tells none."""
    told = {label: parts for label, parts in (document.server_timings or {}).items() if isinstance(parts, Mapping)}
    if not told:
        return None
    names = tuple(dict.fromkeys(name for parts in told.values() for name in parts))
    rows = tuple((label, *(format_seconds(parts.get(name)) for name in names)) for label, parts in told.items())
    return TextTable(("workload", *names), rows)


def counts_table(document: Document) -> TextTable | None:
    """What the server counted, by workload and level; columns that nobody fills are left out. None without any."""
    rows = [(label, one) for label, one in _counted(document) if any(take(one) for _, take in COLUMNS)]
    shown = [(name, take) for name, take in COLUMNS if any(take(one) for _, one in rows)]
    if not rows:
        return None
    return TextTable(
        ("workload or level", *(name for name, _ in shown)),
        tuple((label, *(take(one) or "-" for _, take in shown)) for label, one in rows),
    )


def reset_lines(document: Document) -> list[str]:
    """One line for each workload or level during which counters were reset."""
    return [
        f"{label}: counters were reset meanwhile and are not used: {', '.join(one.reset)}"
        for label, one in _counted(document)
        if one.reset
    ]


def _counted(document: Document) -> Iterator[tuple[str, ServerCounted]]:
    for table in document.workloads:
        if table.server is not None:
            yield table.name, table.server
    for level in document.load.levels if document.load is not None else ():
        if level.server is not None:
            yield level.name, level.server


def _seconds(word: str) -> Callable[[ServerCounted], str]:
    return lambda one: format_seconds(one.seconds[word]) if word in one.seconds else ""


def _number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "" if value is None else format_percent(value, digits=0)


def _megabytes(value: float | None) -> str:
    return "" if value is None else f"{value / 1e6:,.1f} MB"


COLUMNS: tuple[tuple[str, Callable[[ServerCounted], str]], ...] = (
    ("queue", _seconds("queue")),
    ("prefill", _seconds("prefill")),
    ("hand-off", _seconds("handoff")),
    ("moved", lambda one: _megabytes(one.handoff_bytes)),
    ("running", lambda one: _number(one.running)),
    ("waiting", lambda one: _number(one.waiting)),
    ("streams in a step", lambda one: _number(one.streams_per_step)),
    ("from the cache", lambda one: _share(one.cache_hit_rate)),
    ("drafts accepted", lambda one: _share(one.acceptance)),
    ("preemptions", lambda one: _number(one.preemptions, 0)),
)
"""Head -> the text of what was counted; empty where nothing is known."""
