"""The lab's own session in the document: every cell with its intervals, lines through them, one request drawn whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.timeline import Timeline
from phasegate.report import run_words
from phasegate.report.document.from_server import counted_of
from phasegate.report.document.model import MOST_SAMPLES, CellRow, Fit, RequestLine, WorkloadTable
from phasegate.report.document.numbers import estimate, gaps_of, line_through
from phasegate.report.phase_tables import COLUMNS, Row, rows_of
from phasegate.stats.workload_run import WorkloadRun


def tables_of(runs: Iterable[WorkloadRun]) -> tuple[WorkloadTable, ...]:
    """One table for each run that has at least one request, in reading order."""
    return tuple(_table(run) for run in sorted(runs, key=run_words.reading_order) if run.measured)


def _table(run: WorkloadRun) -> WorkloadTable:
    rows, axes = rows_of(run), run_words.axes(run)
    return WorkloadTable(
        name=run.workload.name,
        title=run_words.title(run, rows),
        axis=axes[0] if len(axes) == 1 else None,
        prefix=run.workload.prefix,
        cells=tuple(_cell(run, row) for row in rows),
        fits=tuple(_fits(run)) if run.workload.prefix == "unique" else (),
        gaps=gaps_of(run.gaps()),
        said=tuple(run_words.said(run, rows)),
        remarks=tuple(run_words.remarks(run)),
        server=counted_of(run.server, sum(line.status == "ok" for line in run.timelines())),
    )


def _cell(run: WorkloadRun, row: Row) -> CellRow:
    ttft, tpot, e2el = (estimate(value) for value in row.values)
    samples = {name: tuple(run.values(name, row.cell).values())[:MOST_SAMPLES] for name, _ in COLUMNS}
    return CellRow(
        row.cell.label, row.cell.input_tokens, row.cell.output_tokens, row.cell.role, row.requests,
        ttft, tpot, e2el, {name: values for name, values in samples.items() if values}, row.cached_tokens,
    )  # fmt: skip


def _fits(run: WorkloadRun) -> Iterator[Fit]:
    """TTFT over the prompt and total over the output, where that length varies alone."""
    axes = run_words.axes(run)
    if axes == ["prompt"]:
        points = [(cell.input_tokens, list(run.values("ttft", cell).values())) for cell in run.workload.cells]
        found = line_through("ttft", "prompt tokens", points)
    elif axes == ["output"]:
        points = [(cell.output_tokens - 1, list(run.values("e2el", cell).values())) for cell in run.workload.cells]
        found = line_through("e2el", "output tokens - 1", points)
    else:
        found = None
    if found is not None:
        yield found


def example_request(runs: Iterable[WorkloadRun]) -> RequestLine | None:
    """A real request whose two phases can both be seen: a median one of the cell that divides its time most evenly.

    None where no usable request has both phases.
    """
    found = [(run, line) for run in runs if run.workload.prefix == "unique" for line in run.timelines()]
    known = [(run, line, parts) for run, line in found if (parts := _parts(line)) is not None]
    if not known:
        return None
    cells: dict[tuple[str, int | None, int | None], list[tuple[WorkloadRun, Timeline, tuple[float, float]]]] = {}
    for run, line, parts in known:
        cells.setdefault((run.workload.name, line.prompt_tokens, line.output_tokens), []).append((run, line, parts))
    most_even = min(cells.values(), key=_unevenness)
    middle = float(np.median([total for _, _, (_, total) in most_even]))
    run, line, _ = min(most_even, key=lambda one: abs(one[2][1] - middle))
    return request_line(
        line, run.workload.name, f"the median of {len(most_even)} alike requests of {run.workload.name}"
    )


def _unevenness(requests: Sequence[tuple[WorkloadRun, Timeline, tuple[float, float]]]) -> float:
    """How far the cell's median share of prefill is from a half."""
    return abs(float(np.median([ttft / total for _, _, (ttft, total) in requests])) - 0.5)


def _parts(line: Timeline) -> tuple[float, float] | None:
    """(TTFT, total) of a request that may be shown: usable, with a defined TPOT and a span of its own for decode."""
    if line.status != "ok" or not line.sample_valid:
        return None
    ttft, tpot, total = (metric_named(name).measure(line) for name in ("ttft", "tpot", "e2el"))
    if isinstance(ttft, Undefined) or isinstance(tpot, Undefined) or isinstance(total, Undefined):
        return None
    return (ttft, total) if total > ttft > 0 else None


def request_line(line: Timeline, workload: str = "", why: str = "") -> RequestLine | None:
    """One request as it passed; None where it has no first token or no end."""
    ttft, tpot, total = (metric_named(name).measure(line) for name in ("ttft", "tpot", "e2el"))
    if line.sent is None or isinstance(ttft, Undefined) or isinstance(total, Undefined):
        return None
    return RequestLine(
        request_id=line.request_id,
        workload=workload,
        ttft=ttft,
        total=total,
        token_at=tuple(event.at - line.sent for event in line.tokens),
        tpot=None if isinstance(tpot, Undefined) else tpot,
        prompt_tokens=line.prompt_tokens,
        output_tokens=line.output_tokens,
        cached_tokens=line.cached_tokens,
        why=why,
    )
