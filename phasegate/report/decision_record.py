"""A decision record in Markdown: what was measured of a workload, which phase binds it, and what each lever would save.

Every figure comes from the measurement; the frame around them is fixed, and the arithmetic stands beside each result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phasegate.examination import Examined
from phasegate.gate.diagnose import Ask, CacheCalls, Diagnosis, Level, Situation, diagnose
from phasegate.gate.diagnose.expected import Expectation, expectations
from phasegate.gate.diagnose.explanation import NEITHER
from phasegate.gate.diagnose.prefill_line import prefill_line
from phasegate.report.diagnosis_lines import lever_words
from phasegate.units import format_percent, format_rate, format_seconds

IN_VAIN = 0.05
"""A lever that saves less than a twentieth of the request is listed under what will not help."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the record says of how it came about: command, UTC time, server, client, seed."""

    command: str
    when: str
    server: str
    client: str
    seed: int


def decision_record(examined: Examined, circumstances: Circumstances, before: Situation | None = None) -> str:
    """The whole record; with an earlier situation it also explains what changed.

    Raises:
        ValueError: no request of the workload was measured.
    """
    ask = _main_ask(examined)
    diagnosis = diagnose(examined.situation, before)
    levers = _expected(examined, ask)
    parts = [
        _head(examined, circumstances),
        _measured(examined, ask),
        _phase(ask, diagnosis),
        _found(diagnosis),
        _savings(levers, ask),
        _vain(levers, ask, diagnosis),
        _decision(levers, ask),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _main_ask(examined: Examined) -> Ask:
    own = [one for one in examined.situation.asks if one.name.startswith(f"{examined.workload.name}[")]
    if not own:
        raise ValueError(f"{examined.workload.name}: no request ended well, so there is nothing to decide on")
    return max(own, key=lambda one: one.total or 0.0)


def _calls(examined: Examined) -> CacheCalls | None:
    return next(iter(examined.situation.caches), None)


def _expected(examined: Examined, ask: Ask) -> list[Expectation]:
    calls = _calls(examined)
    saved = calls is not None and calls.again < calls.first
    return expectations(
        ask,
        prefill_line(examined.situation.asks),
        examined.workload.shared_tokens or (calls.shared_tokens if calls is not None else 0),
        calls.again if calls is not None and saved else None,
    )


def _head(examined: Examined, circumstances: Circumstances) -> list[str]:
    return [
        f"# {examined.workload.name}: which lever",
        "",
        f"Status: measured. Written by `{circumstances.command}`; nothing in it is typed by hand but its frame.",
        "",
        f"* Workload: {examined.workload.description}",
        f"* Server: {circumstances.server}",
        f"* Client: {circumstances.client}",
        f"* Measured: {circumstances.when}, seed {circumstances.seed}",
    ]


def _measured(examined: Examined, ask: Ask) -> list[str]:
    lines = [
        "## What was measured",
        "",
        "Medians; one request after another unless users are named.",
        "",
        "| | |",
        "|---|---:|",
    ]
    lines += [f"| {name} | {value} |" for name, value in _rows(examined, ask)]
    return lines


def _rows(examined: Examined, ask: Ask) -> Iterator[tuple[str, str]]:
    yield f"TTFT, {ask.prompt_tokens:,} new prompt tokens", format_seconds(ask.ttft)
    calls = _calls(examined)
    if calls is not None:
        yield f"TTFT with the first {calls.shared_tokens:,} tokens sent before", format_seconds(calls.again)
    if ask.reasoning_tokens:
        yield "reasoning tokens, as the server counts them", f"{ask.reasoning_tokens:,.0f}"
    yield f"TPOT, {ask.output_tokens or 0:,.0f} output tokens", format_seconds(ask.tpot)
    yield "decode, from the first token to the last", format_seconds(ask.decode)
    yield "whole request", format_seconds(ask.total)
    line = prefill_line(examined.situation.asks)
    if line is not None and line.per_token > 0:
        rate = format_rate(1 / line.per_token, "tokens")
        slope = f"{format_seconds(line.per_token * 1000)} per 1,000 tokens ({rate})"
        yield f"prefill, {line.shortest:,} to {line.longest:,} tokens", slope
    for level in examined.situation.levels:
        yield from _level(level)


def _level(level: Level) -> Iterator[tuple[str, str]]:
    users = "1 user" if level.users == 1 else f"{level.users:g} users"
    yield f"{users}: TTFT, TPOT", f"{format_seconds(level.ttft)}, {format_seconds(level.tpot)}"
    yield f"{users}: all streams together", format_rate(level.token_rate, "tokens")


def _phase(ask: Ask, diagnosis: Diagnosis) -> list[str]:
    lines = ["## Which phase", ""]
    reading, decode = ask.prefill_part, ask.decode_part
    if reading is None or decode is None:
        return [*lines, "Not known: TTFT or decode was not measured."]
    share = reading / (reading + decode)
    phase = {"prefill": "**Prefill** binds", "decode": "**Decode** binds"}.get(
        diagnosis.phase or "", "**Both phases** bind"
    )
    parts = [format_percent(part, digits=0) for part in (share, 1 - share)]
    said = f"{phase}: {parts[0]} of a request passes before the first token, {parts[1]} is decode."
    if ask.hidden_thinking:
        said += f" {format_seconds(ask.hidden_thinking)} of unseen reasoning count as decode, though no token shows."
    return [*lines, said]


def _found(diagnosis: Diagnosis) -> list[str]:
    lines = ["## What the figures show", ""]
    if not diagnosis.found:
        return [*lines, "Nothing is over the limits of interactive use, or over the objectives given."]
    for one in diagnosis.found:
        lines.append(f"* {one.symptom} ({one.phase}, {one.confidence.value}): {one.cause}. {'; '.join(one.evidence)}.")
        lines.append(f"  Levers in order: {'; '.join(map(lever_words, one.levers))}.")
    return lines


def _savings(levers: Sequence[Expectation], ask: Ask) -> list[str]:
    lines = [
        "## What each lever would save of one request",
        "",
        "By arithmetic on the figures above. \"At most\" is a bound that a real lever stays below.",
        "",
        "| lever | acts on | changes the | saves | of the request | because |",
        "|---|---|---|---:|---:|---|",
    ]  # fmt: skip
    for one in levers:
        bound = "at most " if one.at_most else ""
        share = format_percent(one.seconds / ask.total, digits=0) if ask.total else "-"
        lines.append(
            f"| {one.lever} | {one.phase} | {one.where} | {bound}{format_seconds(one.seconds)} | {share} | "
            f"{one.arithmetic} |"
        )
    return lines


def _vain(levers: Sequence[Expectation], ask: Ask, diagnosis: Diagnosis) -> list[str]:
    lines = ["## What will not help", ""]
    small = [one for one in levers if ask.total and one.seconds < IN_VAIN * ask.total]
    found = [
        f"* {one.lever}: it acts on {one.phase} and saves {'at most ' if one.at_most else ''}"
        f"{format_seconds(one.seconds)} of {format_seconds(ask.total)}."
        for one in small
    ]
    found += [f"* {text[0].upper()}{text[1:]}." for text in dict.fromkeys(_in_vain(diagnosis))]
    return [*lines, *(found or ["Every lever of the table above saves a share worth having."])]


def _in_vain(diagnosis: Diagnosis) -> Iterator[str]:
    for one in diagnosis.found:
        if one.phase != NEITHER:
            yield from one.will_not_help


def _decision(levers: Sequence[Expectation], ask: Ask) -> list[str]:
    lines = ["## Decision", ""]
    server = [one for one in levers if one.where == "server" and ask.total and one.seconds >= IN_VAIN * ask.total]
    if not server:
        return [*lines, "No setting of the server saves a share worth having; change the request or the hardware."]
    first = server[0]
    bound = "at most " if first.at_most else ""
    said = (
        f"First: **{first.lever}** (saves {bound}{format_seconds(first.seconds)} of {format_seconds(ask.total)}). "
        "It changes neither what is asked nor the hardware."
    )
    rest = [one for one in server[1:] if one.seconds > 0]
    if rest:
        said += f" Then: {'; '.join(one.lever for one in rest)}. Measure again after each; the savings do not add up."
    return [*lines, said]
