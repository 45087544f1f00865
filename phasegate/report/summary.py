"""The terminal summary: on what was measured, the tables of the lab, attribution, laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from phasegate.cli.profile_lines import profile_words
from phasegate.report.gate_lines import WORD_WIDTH, gate_lines
from phasegate.report.load_tables import load_lines, objective_lines
from phasegate.report.phase_tables import COLUMNS, Row, rows_of, show_interval
from phasegate.report.run_words import reading_order, remarks, said, title
from phasegate.report.server_lines import level_lines, server_lines
from phasegate.report.table_text import render_table
from phasegate.report.wrapping import wrapped
from phasegate.stats.workload_run import WorkloadRun

if TYPE_CHECKING:
    from phasegate.measure.session_runner import SessionRunner
    from phasegate.stats.outcome import LawResult


def write_summary(
    terminal: Any,
    runner: SessionRunner,
    laws: list[tuple[str, LawResult]],
    gate: Any = None,
    invalid: Sequence[str] = (),
    load: Any = None,
) -> None:
    """Write everything below pytest's own output; ``invalid`` are reasons why some runs were not judged."""
    terminal.section("phases", sep="=")
    width, colour = terminal._tw.fullwidth, terminal.hasmarkup
    for line in heading(runner):
        terminal.write_line(line)
    for run in sorted(runner.runs.values(), key=reading_order):
        terminal.write_line("")
        for line in run_lines(run, width, colour=colour):
            terminal.write_line(line)
    write_server(terminal, runner)
    if load is not None:
        write_load(terminal, load)
    if invalid:
        terminal.section("cannot be judged", sep="-")
        for reason in invalid:
            terminal.write("INVALID_RUN ", yellow=True, bold=True)
            terminal.write_line(reason)
    if laws:
        terminal.section("laws of the phases", sep="-")
        for word, text in law_lines(laws, width):
            terminal.write(f"{word:<{WORD_WIDTH}}", **MARKUP.get(word, {}))
            terminal.write_line(text)
    if gate is not None:
        write_gate(terminal, gate)


def write_server(terminal: Any, runner: SessionRunner) -> None:
    """The server's own clock beside the client's, where it tells anything."""
    runs = sorted(runner.runs.values(), key=reading_order)
    width, colour = terminal._tw.fullwidth, terminal.hasmarkup
    lines = server_lines(runner.server_metrics, runs, width, colour=colour) if runs else []
    if lines:
        terminal.section("the server's own clock", sep="-")
    for line in lines:
        terminal.write_line(line)


def write_load(terminal: Any, load: Any) -> None:
    """What was measured under load, where anything was."""
    if load.load.empty:
        return
    terminal.section("load", sep="-")
    for line in load_lines(load.load, load.options.objectives, terminal._tw.fullwidth, colour=terminal.hasmarkup):
        terminal.write_line(line)
    for line in level_lines(load.load):
        terminal.write_line(line)
    for word, text in objective_lines(load.judged, terminal._tw.fullwidth - WORD_WIDTH):
        terminal.write(f"{word:<{WORD_WIDTH}}", **MARKUP.get(word, {"yellow": bool(word)}))
        terminal.write_line(text)


def write_gate(terminal: Any, gate: Any) -> None:
    """What the gate compared and said, or why it could not."""
    terminal.section("gate", sep="-")
    if gate.gated is not None:
        for word, text in gate_lines(gate.gated.result, terminal._tw.fullwidth):
            terminal.write(f"{word:<{WORD_WIDTH}}", **MARKUP.get(word, {"yellow": bool(word)}))
            terminal.write_line(text)
    for line in gate.said:
        terminal.write_line(line)


def write_end(terminal: Any, word: str, lines: Sequence[str]) -> None:
    """The word of the run, the same as in its exit status and its reports, and what it covers."""
    terminal.section("result", sep="-")
    width = max(40, terminal._tw.fullwidth - WORD_WIDTH)
    terminal.write(f"{word:<{WORD_WIDTH}}", **MARKUP.get(word, {"yellow": True}))
    for number, part in enumerate(part for line in lines for part in wrapped(line, width)):
        terminal.write_line(f"{'':<{WORD_WIDTH if number else 0}}{part}")


def heading(runner: SessionRunner) -> Iterator[str]:
    """What was measured, from where, and what would repeat it."""
    yield f"server   {runner.server.describe()}"
    yield from (f"warning  {warning}" for warning in runner.warnings)
    yield f"profile  {profile_words(runner.profile, runner.server, runner.endpoint, mark_prefix=runner.mark_prefix)}"
    yield f"client   {runner.client.describe()}"
    yield f"prompts  {runner.prompt_line()}; words new in this run; order by seed {runner.seed}"
    if runner.engine.log_path is not None:
        yield f"log      {runner.engine.log_path}"
    yield "tables   medians with 95 % intervals"
    if runner.plan is not None:
        yield f"plan     {runner.plan}"
    traffic = runner.traffic
    sent = f"sent     {traffic.sent.requests:,} requests, {traffic.failed:,} failed"
    if traffic.most_tokens is not None:
        sent += f"; at most {traffic.sent.tokens:,} of {traffic.most_tokens:,} tokens"
    yield sent
    if traffic.refused is not None:
        yield f"stopped  {traffic.refused}"
    if runner.rate_limit.note is not None:
        yield f"limit    {runner.rate_limit.note}"


def run_lines(run: WorkloadRun, width: int, *, colour: bool) -> list[str]:
    """The table of one workload (medians with 95 % intervals) and the line of attribution below it."""
    rows = rows_of(run)
    lines = wrapped(title(run, rows), width)
    lines += render_table(_table(run, rows), width, colour=colour)
    return [*lines, *said(run, rows), *remarks(run)]


def _table(run: WorkloadRun, rows: list[Row]) -> Table:
    """Lengths that vary, the call where calls differ, and one column for each metric."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    leading: list[tuple[str, Callable[[Row], str]]] = []
    if len(run.workload.input_tokens) > 1:
        leading.append(("prompt", lambda row: str(row.cell.input_tokens)))
    if len(run.workload.output_tokens) > 1:
        leading.append(("output", lambda row: str(row.cell.output_tokens)))
    if run.workload.prefix != "unique":
        leading.append(("call", lambda row: row.cell.role))
    for heading_text in (*(name for name, _ in leading), *(name for _, name in COLUMNS)):
        table.add_column(heading_text, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(show(row) for _, show in leading), *(show_interval(value) for value in row.values))
    return table


def law_lines(laws: list[tuple[str, LawResult]], width: int) -> Iterator[tuple[str, str]]:
    """Word and text of every line about the laws; the word is empty for lines that go on."""
    for _, law in laws:
        yield law.outcome.value, law.law
        for text in (law.reason, *(f"note: {warning}" for warning in law.warnings)):
            for line in wrapped(text, max(40, width - WORD_WIDTH)):
                yield "", line


MARKUP: dict[str, dict[str, bool]] = {
    "PASS": {"green": True},
    "IMPROVED": {"green": True},
    "FAIL": {"red": True, "bold": True},
    "REGRESSION": {"red": True, "bold": True},
    "SLO_BREACH": {"red": True, "bold": True},
    "INCONCLUSIVE": {"yellow": True, "bold": True},
}
"""How words are coloured; all others are yellow."""
