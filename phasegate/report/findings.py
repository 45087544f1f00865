"""A judged build for the terminal: one table of rows, what moved where, warnings, and the verdict line."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from phasegate.core.showing import shown
from phasegate.core.units import format_percent
from phasegate.gate.facts import facts_of
from phasegate.gate.slower_phase import slower_phases
from phasegate.gate.validity import say
from phasegate.gate.verdict import Finding, GateResult, Verdict
from phasegate.report.screen import Screen

_STYLES = {
    Verdict.PASS: "green",
    Verdict.IMPROVED: "green",
    Verdict.REGRESSION: "bold red",
    Verdict.SLO_BREACH: "bold red",
    Verdict.INVALID_RUN: "bold magenta",
    Verdict.INVALID_BASELINE: "bold magenta",
}
"""Verdict -> style; what is not here is neither green nor red: yellow."""


def print_result(result: GateResult, console: Screen) -> None:
    """Print the whole result; the verdict and its sentence come last, where a scrolled terminal shows them."""
    if result.findings:
        console.print(findings_table(result))
    for line in result.attributions.values():
        console.print(f"  {shown(line)}", soft_wrap=True)
    for line in result.warnings:
        console.print(f"warning: {shown(line)}", style="yellow", soft_wrap=True)
    print_verdict(result, console)


def findings_table(result: GateResult) -> Table:
    """One line a row, gated rows first; rows that only inform are dim and marked."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload")
    table.add_column("metric")
    for name in ("baseline", "candidate", "change", "95 % interval", "fails from", "would find", "sessions"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for row in result.findings:
        table.add_row(*_cells(row), style=None if row.gated else "dim")
    return table


def _cells(row: Finding) -> list[str | Text]:
    facts = facts_of(row.metric.split(":")[0])
    old, new = (
        say(value, facts) if facts is not None else ("-" if value is None else f"{value:.4g}")
        for value in (row.baseline_value, row.candidate_value)
    )
    interval = "-"
    if row.ratio_low is not None and row.ratio_high is not None:
        low, high = (format_percent(end - 1, signed=True) for end in (row.ratio_low, row.ratio_high))
        interval = f"{low} to {high}"
    word = Text(row.verdict.value, _STYLES.get(row.verdict, "yellow"))
    return [
        shown(row.workload),
        shown(row.metric),
        old,
        new,
        format_percent(None if row.ratio is None else row.ratio - 1, signed=True),
        interval,
        format_percent(row.fails_from),
        format_percent(row.mde),
        f"{row.baseline_sessions} / {row.candidate_sessions}",
        word if row.gated else word.append(" (informs)", "not bold default"),
    ]


def print_verdict(result: GateResult, console: Screen) -> None:
    """The verdict, its sentence, what to do, and the lever."""
    style = _STYLES.get(result.verdict, "yellow")
    console.print(Text(result.verdict.value, style), end="")
    console.print(f": {shown(result.reason)}", soft_wrap=True)
    deciding = [row for row in result.findings if row.gated and row.verdict is result.verdict and row.advice]
    if deciding and not result.verdict.green:
        console.print(f"  do: {shown(deciding[0].advice)}", soft_wrap=True)
    if result.verdict is Verdict.REGRESSION:
        phases = sorted(slower_phases(deciding, result.findings)) or ["both"]
        console.print(f"  phase: {' and '.join(phases)}")
    if result.lever:
        console.print(f"  {shown(result.lever)}", soft_wrap=True)
    if result.coverage.expected:
        said = f"  compared {result.coverage.compared} of {result.coverage.expected} comparisons the baseline knows"
        console.print(said)
