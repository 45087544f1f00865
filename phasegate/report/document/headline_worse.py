"""First screens of runs that proved something wrong: a regression, a broken objective, a broken law."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.levers import lever_line
from phasegate.gate.slower_phase import leading_row
from phasegate.report.document.headline_parts import (
    Parts,
    also_words,
    said_screen,
    sure_words,
    try_words,
)
from phasegate.report.document.headline_phase import SLOWER, named_phase
from phasegate.report.document.model import WORDS, Headline, Law, ObjectiveRow, Row
from phasegate.report.document.words import (
    change,
    metric_name,
    other_side,
    plural,
    sessions_words,
    values_words,
)


def regression(parts: Parts) -> Headline:
    """The screen of a build that got slower: the row furthest beyond its tolerance, and the phase that rows prove."""
    rows = parts.gated("REGRESSION")
    if not rows:
        return said_screen(parts, "REGRESSION", f"Slower than the {other_side(parts.gate)}")
    every = parts.gate.rows if parts.gate else ()
    row = leading_row(rows, every)
    phase, word = named_phase(rows, every)
    compared = [one for one in every if one.gated]
    among = f"; {len(rows)} of {len(compared)} gated comparisons are slower" if len(compared) > 1 else ""
    lever = lever_line(phase) if parts.gate and parts.gate.lever else None
    return Headline(
        verdict="REGRESSION",
        title=f"{word} {SLOWER}: {metric_name(row.metric)} {change(row)}",
        phase=phase,
        how_much=f"{values_words(row)} in {row.workload}{among}",
        how_sure=sure_words(row, parts.gate),
        what_to_do=tuple(filter(None, [row.advice, try_words(lever)])),
        lever=lever,
        reason=parts.gate.reason if parts.gate else row.reason,
        also=also_words(parts, "REGRESSION"),
    )


def breach(parts: Parts) -> Headline:
    """The screen of a broken objective: the lowest level that breaks it, why, and what it keeps."""
    broken = [one for one in parts.objectives if one.verdict == "SLO_BREACH"]
    if not broken:
        rows = parts.gated("SLO_BREACH")
        return _breach_of_row(parts, rows[0]) if rows else said_screen(parts, "SLO_BREACH", "An objective is broken")
    one = min(broken, key=lambda row: row.level)
    message = next((f.message for f in parts.validity.failures if f.word == "SLO_BREACH"), one.reason)
    _, _, cause = message.partition("; cause: ")
    word = cause.split(":")[0]
    lever = lever_line("throughput" if word == "queueing" else one.phase)
    return Headline(
        verdict="SLO_BREACH",
        title=f"{metric_name(one.metric)} breaks its objective at {_level(one)}{f': {word}' if word else ''}",
        phase=one.phase,
        how_much=_broken_promise(parts, one, broken) + (f"; {cause.removeprefix(f'{word}: ')}" if cause else ""),
        how_sure=_missed(one),
        what_to_do=tuple(filter(None, [_what_it_keeps(parts, one), try_words(lever)])),
        lever=lever,
        reason=message,
        also=also_words(parts, "SLO_BREACH"),
        phase_note="waiting for a turn before the prompt is read" if word == "queueing" else "",
    )


def _broken_promise(parts: Parts, one: ObjectiveRow, broken: Sequence[ObjectiveRow]) -> str:
    said = f"p{one.percentile:g} of {metric_name(one.metric)} is {_percentile(parts, one)}, promised are "
    others = sorted({f"{row.objective} at {_level(row)}" for row in broken if row is not one})
    more = f"; also broken: {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}" if others else ""
    return f"{said}{format_seconds(one.limit)}{more}"


def _missed(one: ObjectiveRow) -> str:
    if one.missed is None or one.missed_low is None:
        return ""
    return (
        f"{format_percent(one.missed)} of all requests missed it, surely at least {format_percent(one.missed_low)} "
        f"(95 % bound); promised are at most {format_percent(1 - one.percentile / 100)}"
    )


def _what_it_keeps(parts: Parts, one: ObjectiveRow) -> str:
    """The highest load that is proven to keep the objective, where the search found one."""
    limits = parts.load.limits if parts.load is not None else ()
    found = next((row for row in limits if row.objective == one.objective and row.by_rate == one.by_rate), None)
    return f"send it no more than it keeps: {found.text}" if found is not None and found.kept is not None else ""


def _breach_of_row(parts: Parts, row: Row) -> Headline:
    lever = parts.gate.lever if parts.gate else None
    return Headline(
        verdict="SLO_BREACH",
        title=f"{metric_name(row.metric)} breaks its objective in {row.workload}",
        phase=row.phase,
        how_much=row.reason,
        how_sure=sessions_words(row, parts.gate),
        what_to_do=tuple(filter(None, [row.advice, try_words(lever)])),
        lever=lever,
        reason=parts.gate.reason if parts.gate else row.reason,
        also=also_words(parts, "SLO_BREACH"),
    )


def _level(one: ObjectiveRow) -> str:
    return f"{one.level:.3g} requests/s" if one.by_rate else f"{one.level:g} at a time"


def _percentile(parts: Parts, one: ObjectiveRow) -> str:
    levels = parts.load.levels if parts.load is not None else ()
    for row in levels:
        if (row.level, row.by_rate) == (one.level, one.by_rate):
            found = row.percentiles.get(one.metric, {}).get(f"p{one.percentile:g}")
            if found is not None:
                return format_seconds(found.value) if found.value is not None else "infinite (requests failed)"
    return "not known"


def failed(parts: Parts) -> Headline:
    """The screen of a broken law, or of any other failed test."""
    broken = [law for law in parts.laws if law.outcome == "FAIL"]
    failures = [one for one in parts.validity.failures if one.word not in WORDS or one.word == "FAIL"]
    if not broken:
        first = failures[0] if failures else None
        said = first.message if first else ""
        title = f"{plural(len(failures), 'test')} failed"
        return Headline("FAIL", title, None, "", "", ("see the failures below",), None, said, also_words(parts, "FAIL"))
    law = broken[0]
    phase = _phase_of_law(law)
    more = f"; {len(broken)} of {len(parts.laws)} laws are broken" if len(broken) > 1 else ""
    return Headline(
        verdict="FAIL",
        title=f"A law of the phases is broken: {law.law}",
        phase=phase,
        how_much=law.reason + more,
        how_sure=f"each bound holds with {format_percent(law.confidence, digits=0)}; {plural(law.n, 'repetition')}",
        what_to_do=("the engine is misconfigured, misreports, or does not do what its numbers suggest: see the law",),
        reason=law.reason,
        also=also_words(parts, "FAIL"),
    )


def _phase_of_law(law: Law) -> str | None:
    """The phase a law's own words name."""
    prefill = any(word in law.law for word in ("TTFT", "prefix", "prefill"))
    decode = any(word in law.law for word in ("TPOT", "decode", "stream"))
    return {(True, False): "prefill", (False, True): "decode"}.get((prefill, decode))
