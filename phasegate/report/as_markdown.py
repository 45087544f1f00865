"""A document as short Markdown: fits a pull-request comment or a job summary, the answer first, tables folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phasegate.core.showing import in_markdown, in_markdown_cell, in_markdown_code
from phasegate.core.units import format_percent
from phasegate.report.document.model import Document, Gate, Row, tone_of
from phasegate.report.document.server_words import clock_table, counts_table, reset_lines
from phasegate.report.document.words import change, interval, metric_name, other_side, plural, this_side, value

MARKS = {"good": "✅", "bad": "❌", "open": "❔", "broken": "⚠️"}

LONGEST = 60_000
"""Characters: a comment on GitHub may have 65,536."""

MOST_ROWS = 25
"""Rows of a table before the rest is only counted."""

MOST_FINDINGS = 5
"""Findings of the diagnosis before the rest is only counted."""

FIRST_LEVERS = 2
"""Levers of a finding that are named; they come in the order in which to try them."""


def render_markdown(document: Document) -> str:
    """The document as Markdown, cut where a comment would not hold it."""
    text = "\n".join(_lines(document)).strip() + "\n"
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST].rsplit("\n", 1)[0] + "\n\n(cut: the HTML report has the rest)\n"


def _lines(document: Document) -> Iterator[str]:
    head = document.headline
    yield f"## {MARKS[tone_of(head.verdict)]} {in_markdown(head.verdict)}: {in_markdown(head.title)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for name, said in (
        ("Phase", head.phase or ""),
        ("How much", head.how_much),
        ("How sure", head.how_sure),
        ("What to do", "<br>".join(in_markdown_cell(one) for one in head.what_to_do)),
        ("Also", "; ".join(head.also)),
        ("Judged", ", ".join(head.judged)),
        ("Not judged", ", ".join(head.not_judged)),
    ):
        if said:
            yield f"| **{name}** | {said if name == 'What to do' else in_markdown_cell(said)} |"
    yield ""
    if document.gate is not None and document.gate.rows:
        yield from _gate(document.gate)
    yield from _objectives(document)
    yield from _laws(document)
    yield from _failures(document)
    yield from _diagnosis(document)
    yield from _server(document)
    yield from _foot(document)


def _gate(gate: Gate) -> Iterator[str]:
    gated = [row for row in gate.rows if row.gated]
    if gated:
        yield from _table(gated, gate)
    for line in gate.attributions[:3]:
        yield f"- {in_markdown(line)}"
    if gate.attributions:
        yield ""
    informing = [row for row in gate.rows if not row.gated]
    if informing:
        yield f"<details><summary>{plural(len(informing), 'comparison')} that only inform</summary>"
        yield ""
        yield from _table(informing, gate)
        yield "</details>"
        yield ""


def _table(rows: Sequence[Row], gate: Gate) -> Iterator[str]:
    sides = f"{other_side(gate)} | {this_side(gate)}"
    yield f"| | workload | metric | {sides} | change | 95 % interval | fails from | tolerance | verdict |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|---|"
    for row in rows[:MOST_ROWS]:
        cells = (
            metric_name(row.metric), value(row, before=True), value(row), change(row), interval(row),
            format_percent(row.fails_from), format_percent(row.tolerance), row.verdict,
        )  # fmt: skip
        name = in_markdown_code(row.workload, cell=True)
        yield f"| {MARKS[tone_of(row.verdict)]} | {name} | {' | '.join(map(in_markdown_cell, cells))} |"
    if len(rows) > MOST_ROWS:
        yield ""
        yield f"and {len(rows) - MOST_ROWS} more"
    yield ""


def _objectives(document: Document) -> Iterator[str]:
    load = document.load
    if load is None or not (load.objectives or load.limits):
        return
    if load.objectives:
        yield "| | objective | level | missed | promised | verdict |"
        yield "|---|---|--:|--:|--:|---|"
        for one in load.objectives[:MOST_ROWS]:
            missed = format_percent(one.missed)
            yield (
                f"| {MARKS[tone_of(one.verdict)]} | {in_markdown_code(one.objective, cell=True)} | {one.level:g} "
                f"| {missed} | at most {format_percent(1 - one.percentile / 100)} | {in_markdown_cell(one.verdict)} |"
            )
        yield ""
    for limit in load.limits:
        yield f"- {in_markdown(limit.text)}{in_markdown(f'; cause: {limit.cause}') if limit.cause else ''}"
    if load.limits:
        yield ""


def _laws(document: Document) -> Iterator[str]:
    if not document.laws:
        return
    broken = [law for law in document.laws if law.outcome != "PASS"]
    yield f"{len(document.laws) - len(broken)} of {plural(len(document.laws), 'law')} of the phases hold."
    for law in broken:
        yield f"- {MARKS[tone_of(law.outcome)]} {in_markdown(f'{law.outcome}: {law.law}: {law.reason}')}"
    yield ""


def _failures(document: Document) -> Iterator[str]:
    validity = document.validity
    said = list(validity.invalid)
    said += [f"{one.test}: {one.message}" for one in validity.failures if one.word == "FAIL" and not document.laws]
    for line in said[:10]:
        yield f"- ⚠️ {in_markdown(line)}"
    if said:
        yield ""


def _diagnosis(document: Document) -> Iterator[str]:
    """What takes the time and what helps first; evidence and the other levers are in the other reports."""
    if not document.diagnosis:
        return
    yield "**Where the time goes, and what helps**"
    yield ""
    found = [one for one in document.diagnosis if one.get("rule")]
    for one in found[:MOST_FINDINGS]:
        phase = f" ({one['phase']})" if one.get("phase") else ""
        said = ": ".join(str(part) for part in (one.get("symptom"), one.get("cause")) if part)
        tried = [str(lever["name"] if isinstance(lever, Mapping) else lever) for lever in one.get("levers") or ()]
        helps = f"<br>helps: {in_markdown('; '.join(tried[:FIRST_LEVERS]))}" if tried else ""
        yield f"- {in_markdown(said + phase)}{helps}"
    if len(found) > MOST_FINDINGS:
        yield f"- and {len(found) - MOST_FINDINGS} more"
    yield from (
        f"- {in_markdown(str(one['cause']))}" for one in document.diagnosis if not one.get("rule") and one.get("cause")
    )
    yield ""


def _server(document: Document) -> Iterator[str]:
    """The server's own clock and counts, folded."""
    tables = [table for table in (clock_table(document), counts_table(document)) if table is not None]
    lines = reset_lines(document)
    if not tables and not lines:
        return
    yield "<details><summary>The server's own clock beside the client's</summary>"
    yield ""
    for table in tables:
        yield f"| {' | '.join(map(in_markdown_cell, table.head))} |"
        yield f"|---|{'--:|' * (len(table.head) - 1)}"
        for row in table.rows[:MOST_ROWS]:
            yield f"| {' | '.join(map(in_markdown_cell, row))} |"
        yield ""
        if len(table.rows) > MOST_ROWS:
            yield f"and {len(table.rows) - MOST_ROWS} more"
            yield ""
    yield from (f"- {in_markdown(line)}" for line in lines)
    yield from [""] if lines else []
    yield "</details>"
    yield ""


def _foot(document: Document) -> Iterator[str]:
    server = document.environment.server
    parts = [f"{name} {server[name]}" for name in ("engine", "version", "model", "hardware") if name in server]
    if document.gate is not None and document.gate.expected:
        parts.append(f"compared {document.gate.compared} of {document.gate.expected}")
    for command in document.reproduce.commands[:1]:
        yield f"Repeat with {in_markdown_code(command)}"
        yield ""
    yield f"<sub>{in_markdown('; '.join([f'phasegate {document.phasegate}, {document.created}', *parts]))}</sub>"
