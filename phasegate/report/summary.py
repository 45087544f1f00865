"""The terminal summary: on what was measured, the tables of the lab, attribution, laws."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from phasegate.report.lab_tables import COLUMNS, Row, attribution, cache_lines, rows_of, show_interval
from phasegate.run import WorkloadRun

if TYPE_CHECKING:
    from phasegate.lab import Lab
    from phasegate.stats.outcome import LawResult


def write_summary(terminal: Any, lab: Lab, laws: list[tuple[str, LawResult]]) -> None:
    """Write everything below pytest's own output."""
    terminal.section("phases", sep="=")
    width, colour = terminal._tw.fullwidth, terminal.hasmarkup
    for line in heading(lab):
        terminal.write_line(line)
    for run in lab.runs.values():
        terminal.write_line("")
        for line in run_lines(run, width, colour=colour):
            terminal.write_line(line)
    if laws:
        terminal.write_line("")
        for line in law_lines(laws, width, colour=colour):
            terminal.write_line(line)


def heading(lab: Lab) -> Iterator[str]:
    """What was measured, from where, and what would repeat it."""
    yield f"server   {lab.server.describe()}"
    yield f"client   {lab.client.describe()}"
    yield f"prompts  {lab.prompt_line()}; seed {lab.seed}"


def run_lines(run: WorkloadRun, width: int, *, colour: bool) -> list[str]:
    """The table of one workload and the line of attribution below it."""
    rows = rows_of(run)
    lines = _render(_table(run, rows), width, colour=colour)
    if run.workload.prefix != "unique":
        lines += cache_lines(rows)
    else:
        lines += [said for axis in _axes(run) if (said := attribution(rows, axis)) is not None]
    if run.partial:
        lines.append(f"PARTIAL: stopped after {len(run.measured)} requests")
    lines += [f"failed: {count} x {kind}" for kind, count in run.failures().items()]
    lines += [f"unfit for a sample: {count} x {reason}" for reason, count in run.unfit().items()]
    lines += [f"note: {note}" for note in run.notes]
    return lines


def _axes(run: WorkloadRun) -> list[str]:
    axes = (("prompt", run.workload.input_tokens), ("output", run.workload.output_tokens))
    return [name for name, levels in axes if len(levels) > 1]


def _table(run: WorkloadRun, rows: list[Row]) -> Table:
    workload = run.workload
    table = Table(title=f"{workload.name}: {workload.description}", title_justify="left", box=box.SIMPLE_HEAD)
    for heading_text in ("prompt", "output"):
        table.add_column(heading_text, justify="right")
    if workload.prefix != "unique":
        table.add_column("call")
    table.add_column("n", justify="right")
    for _, heading_text in COLUMNS:
        table.add_column(f"{heading_text} p50 [95 %]", no_wrap=True)
    for row in rows:
        role = [row.cell.role] if workload.prefix != "unique" else []
        lengths = [str(row.cell.input_tokens), str(row.cell.output_tokens)]
        table.add_row(*lengths, *role, str(row.requests), *(show_interval(value) for value in row.values))
    return table


def law_lines(laws: list[tuple[str, LawResult]], width: int, *, colour: bool) -> list[str]:
    """One row per law: how it ended and why."""
    table = Table(title="laws of the phases", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("law")
    table.add_column("outcome")
    table.add_column("reason", overflow="fold")
    styles = {"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "bold yellow"}
    for _, law in laws:
        word = law.outcome.value
        table.add_row(law.law, f"[{styles[word]}]{word}[/]", law.reason)
    return _render(table, width, colour=colour)


def _render(table: Table, width: int, *, colour: bool) -> list[str]:
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=colour, no_color=not colour, highlight=False)
    console.print(table)
    return buffer.getvalue().rstrip("\n").split("\n")
