"""The diagnosis in few calm lines: what takes the time, what shows it, what to try, what not to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose import RULES, Diagnosis, Explanation
from phasegate.diagnose.remedies import REMEDIES
from phasegate.gate.levers import Lever, lever_line
from phasegate.report.gate_lines import WORD_WIDTH, Line
from phasegate.report.wrapping import wrapped

SHOWN = 3
"""Findings that a summary writes out; the rest are counted."""

TRIED = 2
"""Levers of a finding that a summary names; ``phasegate explain`` names all."""


def diagnosis_lines(diagnosis: Diagnosis, width: int, *, full: bool = False) -> Iterator[Line]:
    """Phase and text of every line; the phase is empty where a finding goes on.

    Args:
        diagnosis: what was found.
        width: of the screen.
        full: every finding with every lever, and what was not measured.
    """
    shown = diagnosis.found if full else diagnosis.found[:SHOWN]
    for one in shown:
        yield from _finding(one, width, full=full)
    if len(diagnosis.found) > len(shown):
        more = len(diagnosis.found) - len(shown)
        yield "", f"and {more} more, each explaining less time; phasegate explain names them all"
    for line in _silence(diagnosis):
        yield from _wrapped(line, width)
    if diagnosis.share is not None:
        yield from _wrapped(diagnosis.share, width)
    if diagnosis.steps is not None:
        yield from _wrapped(diagnosis.steps, width)
    if not diagnosis.found and diagnosis.phase is not None:
        yield from _wrapped(f"to make it faster, {lever_line(diagnosis.phase)}", width)
    if full and diagnosis.missing:
        yield from _wrapped(f"not measured: {'; '.join(diagnosis.missing)}", width)


def _silence(diagnosis: Diagnosis) -> Iterator[str]:
    """What is said where the rules are silent: never that nothing is slow where a change or a breach is proven."""
    if diagnosis.unexplained:
        yield f"explained by no rule: {_some(diagnosis.unexplained)}"
    if diagnosis.missed:
        yield f"broken objectives: {_some(diagnosis.missed)}"
    elif not (diagnosis.unexplained or diagnosis.found):
        yield f"nothing that was measured is slow{_unchanged(diagnosis)}"


def _some(clauses: Sequence[str]) -> str:
    more = len(clauses) - SHOWN
    return "; ".join([*clauses[:SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _unchanged(diagnosis: Diagnosis) -> str:
    if diagnosis.compared is None:
        return ""
    if diagnosis.gated:
        return ", and no comparison proved anything slower that would fail a build"
    return f", and nothing got slower by {format_percent(diagnosis.compared, digits=0)} or more"


def _finding(one: Explanation, width: int, *, full: bool) -> Iterator[Line]:
    head = f"{one.symptom}: {one.cause}{_time(one)}"
    for number, text in enumerate(folded(head, width)):
        yield ("" if number else one.phase), text
    for clause in one.evidence:
        yield from _wrapped(clause, width)
    levers = one.levers if full else one.levers[:TRIED]
    yield from _wrapped(f"try: {'; '.join(map(lever_words, levers))}", width)
    if one.will_not_help:
        yield from _wrapped(f"will not help: {'; '.join(one.will_not_help)}", width)


def _time(one: Explanation) -> str:
    """How much of which request it explains, and how sure that is."""
    sign = "+" if one.change else ""
    seconds = f", {sign}{format_seconds(one.seconds)}" if one.seconds > 0 else ""
    return f"{seconds} ({'; '.join(filter(None, [one.of, one.confidence.value]))})"


def lever_words(lever: Lever) -> str:
    """A lever with its limit."""
    return f"{lever.name} ({lever.cannot})" if lever.cannot else lever.name


def rules_table() -> list[str]:
    """Every rule as a row of a Markdown table, in the order in which they look."""
    lines = ["| rule | it looks for | phase | it needs | first lever |", "|---|---|---|---|---|"]
    for rule in RULES:
        lever = REMEDIES[rule.remedy][0].name
        lines.append(f"| `{rule.name}` | {rule.sign} | {rule.phase} | {rule.needs} | {lever} |")
    return lines


def diagnosis_record(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values for JSON."""
    return {
        "findings": [_record(one) for one in diagnosis.found],
        "share": diagnosis.share,
        "phase": diagnosis.phase,
        "steps": diagnosis.steps,
        "not_measured": list(diagnosis.missing),
        "unexplained": list(diagnosis.unexplained),
    }


def _record(one: Explanation) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "symptom": one.symptom,
        "cause": one.cause,
        "phase": one.phase,
        "seconds": one.seconds,
        "of": one.of,
        "evidence": list(one.evidence),
        "confidence": one.confidence.value,
        "levers": [{"name": lever.name, "cannot": lever.cannot} for lever in one.levers],
        "will_not_help": list(one.will_not_help),
        "change": one.change,
    }


def folded(text: str, width: int) -> Sequence[str]:
    """A sentence in lines that fit beside the words of a screen so wide."""
    return wrapped(text, max(40, width - WORD_WIDTH))


def _wrapped(text: str, width: int) -> Iterator[Line]:
    for line in folded(text, width):
        yield "", line


def write_diagnosis(terminal: Any, diagnosis: Diagnosis) -> None:
    """The block at the end of a run."""
    terminal.section("diagnosis", sep="-")
    for word, text in diagnosis_lines(diagnosis, terminal._tw.fullwidth):
        terminal.write(f"{word:<{WORD_WIDTH}}", **({"bold": True} if word else {}))
        terminal.write_line(text)
