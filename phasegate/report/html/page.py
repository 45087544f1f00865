"""The page of a document: what goes where is decided here, how it looks in ``page.html.j2`` and ``style.css``.

The page's own security policy forbids every request, so a report can be mailed, archived and opened anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.report.charts.blocks import blocks_chart
from phasegate.report.charts.cache import cache_chart
from phasegate.report.charts.change import change_bar, ruler
from phasegate.report.charts.gaps import gaps_chart
from phasegate.report.charts.lengths import length_chart, per_token_chart
from phasegate.report.charts.load import load_charts
from phasegate.report.charts.standalone import stylesheet
from phasegate.report.charts.svg import Chart
from phasegate.report.charts.timeline import timeline_chart
from phasegate.report.charts.trend import trend_chart
from phasegate.report.document.model import WORDS, Document, Row, WorkloadTable, tone_of
from phasegate.report.document.server_words import clock_table, counts_table, reset_lines
from phasegate.report.document.words import (
    change,
    interval,
    metric_name,
    other_side,
    plural,
    short_pair,
    show,
    this_side,
)
from phasegate.report.html.missing import missing_sections

MOST_TRENDS = 12
"""Trends that a page draws; more would be scrolled past. The rest are in the JSON."""


def render_html(document: Document) -> str:
    """The whole page."""
    template = _environment().from_string(_resource("page.html.j2"))
    return template.render(
        doc=document,
        tone=tone_of(document.headline.verdict),
        css=Markup(stylesheet() + _resource("style.css")),
        gate=_gate(document),
        phases=[(table, _charts(table)) for table in document.workloads],
        load_charts=load_charts(document.load) if document.load is not None else [],
        timeline=timeline_chart(document.request) if document.request is not None else None,
        trends=list(_trends(document)),
        clock=clock_table(document),
        counts=counts_table(document),
        resets=reset_lines(document),
        missing=missing_sections(document),
        other_side=other_side(document.gate),
        this_side=this_side(document.gate),
    )


@cache
def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        seconds=format_seconds, percent=format_percent, metric=metric_name, tone=tone_of, svg=Markup, plural=plural,
        show=show, rate=format_rate,
    )  # fmt: skip
    return environment


@cache
def _resource(name: str) -> str:
    return (files("phasegate.report.html") / name).read_text(encoding="utf-8")


def _charts(table: WorkloadTable) -> list[Chart]:
    """What can be drawn of a workload."""
    found = (cache_chart(table), length_chart(table), per_token_chart(table), gaps_chart(table))
    return [one for one in found if one is not None]


def _gate(document: Document) -> dict[str, Any] | None:
    """The gate's rows with their bars: those that decide, and those that only inform."""
    gate = document.gate
    if gate is None:
        return None
    deciding = [row for row in gate.rows if row.gated]
    informing = [row for row in gate.rows if not row.gated]
    tables = {}
    for name, rows in (("deciding", deciding), ("informing", informing)):
        on = ruler(rows)
        tables[name] = {"axis": on.axis(), "rows": [_gate_row(row, change_bar(row, on)) for row in rows]}
    return {**tables, "summary": _summary(deciding, len(informing), gate.reason)}


def _summary(deciding: Sequence[Row], informing: int, reason: str) -> str:
    """How the rows ended, in one sentence; the gate's own where there are none."""
    if not deciding:
        return reason
    counts = Counter(row.verdict for row in deciding)
    words = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    more = f"; {informing} more only inform, since the other phase binds those workloads" if informing else ""
    return f"{plural(len(deciding), 'comparison')} decide{'s' if len(deciding) == 1 else ''} this build: {words}{more}."


def _gate_row(row: Row, bar: str) -> dict[str, Any]:
    before, now = short_pair(row)
    return {
        "row": row,
        "bar": bar,
        "change": change(row),
        "interval": interval(row),
        "before": before,
        "now": now,
    }


def _trends(document: Document) -> Iterator[Chart]:
    rows: dict[tuple[str, str], Row] = {}
    if document.gate is not None:
        rows = {(row.workload, row.metric): row for row in document.gate.rows}
    for trend in _most_telling(document)[:MOST_TRENDS]:
        row = rows.get((trend.workload, trend.metric))
        change = row.ratio - 1 if row is not None and row.ratio is not None else None
        if trend.orders:
            yield blocks_chart(trend, change)
            continue
        tolerance, better = (row.tolerance, row.better) if row is not None else (None, "lower")
        yield trend_chart(trend, tolerance, better=better, change=change)


def _most_telling(document: Document) -> Sequence[Any]:
    """Gated trends first, in the order of the gate's rows."""
    gated = [one for one in document.trends if one.gated]
    return gated or list(document.trends)
