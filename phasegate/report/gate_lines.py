"""A judged build in few lines: what is not green with its reason, what is green in one line each, then the verdict.

Rows that only inform are counted, and named where they got slower. Everything else about them is in the JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from phasegate.core.units import format_percent
from phasegate.gate.verdict import Finding, GateResult, Verdict
from phasegate.report.wrapping import wrapped

WORD_WIDTH = max(len(verdict.value) for verdict in Verdict) + 2

NAMED = 3
"""At most this many remarks of one kind are written out; the rest are counted."""

Line = tuple[str, str]
"""A verdict word, or nothing, and the text behind it."""


def gate_lines(result: GateResult, width: int) -> Iterator[Line]:
    """The whole result; the verdict comes last, where a scrolled terminal shows it."""
    gated = [row for row in result.findings if row.gated]
    name_width = max((len(_name(row)) for row in gated), default=0)
    told: Counter[Verdict] = Counter()
    for row in gated:
        yield row.verdict.value, f"{_name(row):<{name_width}}  {_numbers(row)}"
        told[row.verdict] += 1
        if not row.verdict.green and told[row.verdict] <= NAMED:
            reason = row.reason.removeprefix(f"{_name(row)}: ")
            yield from _wrapped(f"{reason}; {row.advice}" if row.advice else reason, width)
    yield from _informing([row for row in result.findings if not row.gated], width)
    for line in _few(list(result.attributions.values())):
        yield from _wrapped(line, width)
    for line in _grouped(result.warnings):
        yield from _wrapped(f"note: {line}", width)
    yield from _verdict(result, width)


def _name(row: Finding) -> str:
    return f"{row.workload} {row.metric}"


def _numbers(row: Finding) -> str:
    """``+20.3 % [+19.7 %, +20.9 %]  fails from 2.5 %, finds 2.0 %``: change, interval, from which change it fails, and
    the smallest that would have been found."""
    if row.ratio is None:
        return "not compared"
    text = format_percent(row.ratio - 1, signed=True)
    if row.ratio_low is not None and row.ratio_high is not None:
        ends = ", ".join(format_percent(end - 1, signed=True) for end in (row.ratio_low, row.ratio_high))
        text += f" [{ends}]"
    found = "finds nothing" if row.mde is None or row.mde == float("inf") else f"finds {format_percent(row.mde)}"
    fails = f"fails from {format_percent(row.fails_from)}, " if row.fails_from is not None else ""
    return f"{text}  {fails}{found}"


def _informing(rows: Sequence[Finding], width: int) -> Iterator[Line]:
    if not rows:
        return
    slower = [row for row in rows if row.verdict is Verdict.REGRESSION]
    only = "1 more comparison only informs" if len(rows) == 1 else f"{len(rows)} more comparisons only inform"
    yield "", f"{only}; {len(slower) or 'none'} got slower"
    for line in _few([f"{_name(row)}  {_numbers(row)}" for row in slower]):
        yield from _wrapped(line, width)


def _few(lines: Sequence[str]) -> list[str]:
    more = len(lines) - NAMED
    return [*lines[:NAMED], f"and {more} more"] if more > 0 else list(lines)


def _grouped(warnings: Sequence[str]) -> Iterator[str]:
    """Warnings, those that differ only in the comparison and in numbers written once with their count."""
    kinds: dict[str, list[str]] = {}
    for warning in warnings:
        if warning.startswith("not gated, but slower"):
            continue  # the rows that inform have said so
        name, colon, rest = warning.partition(": ")
        key = re.sub(r"\d+", "#", rest) if colon and "[" in name else warning
        kinds.setdefault(key, []).append(warning)
    for alike in kinds.values():
        yield alike[0] if len(alike) == 1 else f"{alike[0]} (and {len(alike) - 1} more such comparisons)"


def _verdict(result: GateResult, width: int) -> Iterator[Line]:
    yield result.verdict.value, f"compared {result.coverage.compared} of {result.coverage.expected} comparisons"
    yield from _wrapped(result.reason, width)
    if result.lever:
        yield from _wrapped(result.lever, width)


def _wrapped(text: str, width: int) -> Iterator[Line]:
    for line in wrapped(text, max(40, width - WORD_WIDTH)):
        yield "", line
