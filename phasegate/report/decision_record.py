"""A decision record in Markdown: what was measured of a workload, which phase binds it, and what each lever would save.

Every figure comes from the measurement; the frame around them is fixed, and the arithmetic stands beside each result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from phasegate.core.showing import in_markdown, in_markdown_code
from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.diagnose import Ask, CacheCalls, Diagnosis, Level, Observations, diagnose
from phasegate.diagnose.choice import Choice, choose, remarks, worth
from phasegate.diagnose.prefill_line import prefill_line
from phasegate.diagnose.savings import Saving, savings
from phasegate.measure.measure_for_diagnosis import MeasuredForDiagnosis
from phasegate.report.diagnosis_lines import lever_words

CHANGES = {
    "server": "changes neither what is asked nor the hardware",
    "request": "changes what is asked",
    "hardware": "changes the hardware",
}
"""What has to change for a lever, in words."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the record says of how it came about: command, UTC time, server, client, seed.

    ``simulated`` where the server was no engine: its times are settings, which a reader must not take for a model's.
    """

    command: str
    when: str
    server: str
    client: str
    seed: int
    simulated: bool = False


def decision_record(
    measured_for_diagnosis: MeasuredForDiagnosis, circumstances: Circumstances, before: Observations | None = None
) -> str:
    """The whole record; with an earlier situation it also explains what changed.

    Raises:
        ValueError: no request of the workload was measured.
    """
    ask = _main_ask(measured_for_diagnosis)
    diagnosis = diagnose(measured_for_diagnosis.observations, before)
    levers = _savings_of(measured_for_diagnosis, diagnosis, ask)
    parts = [
        _head(measured_for_diagnosis, circumstances),
        _measured(measured_for_diagnosis, ask),
        _phase(ask, diagnosis),
        _found(diagnosis),
        _savings(levers, ask),
        _vain(levers, ask, diagnosis),
        _decision(choose(levers, diagnosis, ask.total or 0.0), ask, _doubts(measured_for_diagnosis)),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _main_ask(measured_for_diagnosis: MeasuredForDiagnosis) -> Ask:
    own = [
        one
        for one in measured_for_diagnosis.observations.asks
        if one.name.startswith(f"{measured_for_diagnosis.workload.name}[")
    ]
    if not own:
        raise ValueError(
            f"{measured_for_diagnosis.workload.name}: no request ended well, so there is nothing to decide on"
        )
    return max(own, key=lambda one: one.total or 0.0)


def _calls(measured_for_diagnosis: MeasuredForDiagnosis) -> CacheCalls | None:
    return next(iter(measured_for_diagnosis.observations.caches), None)


def _savings_of(measured_for_diagnosis: MeasuredForDiagnosis, diagnosis: Diagnosis, ask: Ask) -> list[Saving]:
    calls = _calls(measured_for_diagnosis)
    saved = calls is not None and calls.again < calls.first
    return savings(
        measured_for_diagnosis.observations,
        diagnosis,
        ask,
        measured_for_diagnosis.workload.shared_tokens or (calls.shared_tokens if calls is not None else 0),
        calls.again if calls is not None and saved else None,
    )


def _head(measured_for_diagnosis: MeasuredForDiagnosis, circumstances: Circumstances) -> list[str]:
    simulated = ["* Simulated: no model was run. The server's times are settings; what is made of them is not."]
    return [
        f"# {in_markdown(measured_for_diagnosis.workload.name)}: which lever",
        "",
        f"Status: measured. Written by {in_markdown_code(circumstances.command)}; "
        "nothing in it is typed by hand but its frame.",
        "",
        f"* Workload: {in_markdown(measured_for_diagnosis.workload.description)}",
        f"* Server: {in_markdown(circumstances.server)}",
        *(simulated if circumstances.simulated else []),
        f"* Client: {in_markdown(circumstances.client)}",
        f"* Measured: {circumstances.when}, seed {circumstances.seed}",
    ]


def _measured(measured_for_diagnosis: MeasuredForDiagnosis, ask: Ask) -> list[str]:
    lines = [
        "## What was measured",
        "",
        "Medians; one request after another unless users are named.",
        "",
        "| | |",
        "|---|---:|",
    ]
    lines += [f"| {name} | {value} |" for name, value in _rows(measured_for_diagnosis, ask)]
    return lines


def _rows(measured_for_diagnosis: MeasuredForDiagnosis, ask: Ask) -> Iterator[tuple[str, str]]:
    yield f"TTFT, {ask.prompt_tokens:,} new prompt tokens", format_seconds(ask.ttft)
    calls = _calls(measured_for_diagnosis)
    if calls is not None:
        yield f"TTFT with the first {calls.shared_tokens:,} tokens sent before", format_seconds(calls.again)
    if ask.reasoning_tokens:
        yield "reasoning tokens, as the server counts them", f"{ask.reasoning_tokens:,.0f}"
    yield f"TPOT, {ask.output_tokens or 0:,.0f} output tokens", format_seconds(ask.tpot)
    yield "decode, from the first token to the last", format_seconds(ask.decode)
    yield "whole request", format_seconds(ask.total)
    line = prefill_line(measured_for_diagnosis.observations.asks)
    if line is not None and line.per_token > 0:
        rate = format_rate(1 / line.per_token, "tokens")
        slope = f"{format_seconds(line.per_token * 1000)} per 1,000 tokens ({rate})"
        yield f"prefill, {line.shortest:,} to {line.longest:,} tokens", slope
    for level in measured_for_diagnosis.observations.levels:
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
    if ask.hidden_thinking:
        unseen = format_seconds(ask.hidden_thinking)
        said = f"{parts[0]} of a request is reading the prompt, {parts[1]} is decode, {unseen} of it unseen reasoning."
    else:
        said = f"{parts[0]} of a request passes before the first token, {parts[1]} is decode."
    return [*lines, f"{phase}: {said}"]


def _found(diagnosis: Diagnosis) -> list[str]:
    lines = ["## What the figures show", ""]
    if not diagnosis.found:
        return [*lines, "Nothing is over the limits of interactive use, or over the objectives given."]
    for one in diagnosis.found:
        lines.append(f"* {one.symptom} ({one.phase}, {one.confidence.value}): {one.cause}. {'; '.join(one.evidence)}.")
        lines.append(f"  Levers in order: {'; '.join(map(lever_words, one.levers))}.")
    return lines


def _savings(levers: Sequence[Saving], ask: Ask) -> list[str]:
    lines = [
        "## What each lever would save of one request",
        "",
        "By arithmetic on the figures above. \"At most\" is a bound that a real lever stays below, as good as what it "
        "rests on.",
        "",
        "| lever | acts on | changes the | saves | of the request | because | rests on |",
        "|---|---|---|---:|---:|---|---|",
    ]  # fmt: skip
    for one in levers:
        share = format_percent(one.seconds / ask.total, digits=0) if ask.total else "-"
        saves = one.words if one.seconds else "nothing"
        lines.append(
            f"| {one.lever} | {one.phase} | {one.where} | {saves} | {share} | {one.arithmetic} | {one.rests_on} |"
        )
    return lines


def _vain(levers: Sequence[Saving], ask: Ask, diagnosis: Diagnosis) -> list[str]:
    lines = ["## What will not help", ""]
    small = [one for one in levers if ask.total and not worth(one, ask.total)]
    found = [
        f"* {_capital(one.lever)}: it acts on {one.phase} and saves "
        + (f"{one.words} of {format_seconds(ask.total)}." if one.seconds else f"nothing ({one.arithmetic}).")
        for one in small
    ]
    found += [
        f"* Against {' and '.join(f'*{symptom}*' for symptom in symptoms)}: {text}."
        for text, symptoms in remarks(levers, diagnosis).items()
    ]
    return [*lines, *(found or ["Every lever of the table above saves a share worth having."])]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _doubts(measured_for_diagnosis: MeasuredForDiagnosis) -> tuple[str, ...]:
    return (*measured_for_diagnosis.observations.client, *measured_for_diagnosis.observations.host)


def _decision(choice: Choice, ask: Ask, doubts: Sequence[str]) -> list[str]:
    lines = ["## Decision", ""]
    if doubts:
        lines += ["Only after measuring again: the client or the host was disturbed, as said above.", ""]
    said = _first(choice, ask)
    sure, bounds = (_list_of(one for one in choice.then if one.at_most is bound) for bound in (False, True))
    said += f" Then: {sure}." if sure else ""
    said += f" Bounds only, to be measured before they are believed: {bounds}." if bounds else ""
    said += " Measure again after each lever; the savings do not add up." if choice.then else ""
    return [*lines, said]


def _list_of(levers: Iterable[Saving]) -> str:
    return "; ".join(f"{one.lever} ({one.where}, {one.words})" for one in levers)


def _first(choice: Choice, ask: Ask) -> str:
    because = ""
    if choice.finding is not None:
        because = f" The first finding names it: *{choice.finding.symptom}*, {choice.finding.cause}."
    if choice.unreckoned is not None:
        limit = choice.unreckoned.cannot
        return f"First: **{choice.unreckoned.name}** ({limit}; how much it saves, these figures do not tell).{because}"
    if choice.first is None:
        return "No setting of the server saves a share worth having; change the request or the hardware."
    first = choice.first
    rests = f", which rests on {first.rests_on}" if first.at_most else ""
    return (
        f"First: **{first.lever}** (saves {first.words} of {format_seconds(ask.total)}{rests}). "
        f"It {CHANGES[first.where]}.{because}"
    )
