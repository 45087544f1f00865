"""Why an objective broke under load: queueing, prefill, decode, or the client itself.

A first token can be late because prefill is slow or because the request waited for its turn. Where the server tells how
long its prefill took (llama.cpp's ``timings``), the rest of TTFT is waiting. Where it does not, prefill may have slowed
down by as much as decode did, since both share the server's steps; what TTFT grew beyond that is waiting.

An objective of a p95 may break while the median request is as quick as ever, so it is the requests that missed it that
are asked for the cause, and not all of them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.slo import Objective
from phasegate.stats.level_run import LevelRun, Round, value_of


class Cause(str, enum.Enum):
    """What took the time."""

    QUEUEING = "queueing"
    PREFILL = "prefill"
    DECODE = "decode"
    CLIENT = "client"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Broken:
    """The cause of a break, with its numbers in one sentence."""

    cause: Cause
    reason: str


def cause_of(objective: Objective, single: LevelRun, broken: LevelRun) -> Broken:
    """Why an objective broke at a level.

    Args:
        objective: the one that broke.
        single: the same workload from one user, measured in the same sitting.
        broken: the level at which it broke.
    """
    if broken.notes:
        return Broken(Cause.CLIENT, f"the client itself was late: {broken.notes[0]}")
    failed = broken.failures()
    if failed.total() > (1 - objective.share) * broken.sent:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in failed.most_common())
        return Broken(Cause.FAILURES, f"{failed.total()} of {broken.sent} requests failed ({kinds})")
    late = _those_that_missed(objective, broken)
    if objective.metric == "tpot":
        found = _decode_cause(single, late)
    elif objective.metric == "e2el":
        found = _whole_cause(single, late)
    else:
        found = _first_token_cause(single, late)
    if late.sent == broken.sent:
        return found
    return Broken(found.cause, f"of the {late.sent} of {broken.sent} requests that missed it, {found.reason}")


def _those_that_missed(objective: Objective, run: LevelRun) -> LevelRun:
    """The requests that took longer than promised, as a level of their own; all of them where none has a value."""
    rounds = []
    for one in run.rounds:
        values = [(line, value_of(line, objective.metric)) for line in one.timelines]
        late = tuple(line for line, value in values if value is not None and value > objective.limit)
        if late:
            rounds.append(Round(late))
    return replace(run, rounds=tuple(rounds)) if rounds else run


def _first_token_cause(single: LevelRun, broken: LevelRun) -> Broken:
    alone, now = single.median("ttft"), broken.median("ttft")
    if alone is None or now is None:
        return Broken(Cause.FAILURES, "no first token came in time to be measured")
    grown = now - alone
    told = broken.median_server_prefill()
    if told is not None:
        waited, how = max(0.0, now - told), f"the server's own prefill takes {format_seconds(told)}"
    else:
        slowdown = max(1.0, (broken.median("tpot") or 0.0) / (single.median("tpot") or float("inf")))
        waited = max(0.0, now - alone * slowdown)
        explained = f"decode slowed down {slowdown:.2f} times, which explains {format_seconds(alone * slowdown)}"
        how = explained if _beside(alone, single, broken) else ""
    words = "; ".join(filter(None, [f"TTFT is {format_seconds(now)}{_beside(alone, single, broken)}", how]))
    # At least half of what was added must have been spent waiting, and it must not have been slow all along.
    if grown > alone and waited >= grown / 2:
        share = format_percent(min(1.0, waited / now), digits=0)
        return Broken(Cause.QUEUEING, f"{words}; {share} of TTFT is waiting for a turn")
    return Broken(Cause.PREFILL, f"{words}; reading the prompt itself takes the time")


def _beside(alone: float, single: LevelRun, broken: LevelRun) -> str:
    """What it was at the lowest level, where that is another one."""
    if broken.level == single.level and broken.by_rate == single.by_rate:
        return ""
    few = "from one user" if single.level == 1 else f"with {single.name}"
    few = f"at {single.name}" if single.by_rate else few
    return f", {format_seconds(alone)} {few}"


def _decode_cause(single: LevelRun, broken: LevelRun) -> Broken:
    alone, now, step = single.median("tpot"), broken.median("tpot"), broken.median_gap()
    if alone is None or now is None or step is None:
        return Broken(Cause.FAILURES, "no answer had two tokens to be measured")
    words = f"TPOT is {format_seconds(now)}{_beside(alone, single, broken)}"
    if now - step > (now - alone) / 2 and now > alone:
        return Broken(
            Cause.PREFILL,
            f"{words}; the usual gap is only {format_seconds(step)}, the rest are stalls while other prompts are read",
        )
    return Broken(Cause.DECODE, f"{words}; the usual gap is {format_seconds(step)}: the steps themselves take the time")


def _whole_cause(single: LevelRun, broken: LevelRun) -> Broken:
    ttft = [run.median("ttft") for run in (single, broken)]
    whole = [run.median("e2el") for run in (single, broken)]
    if None in ttft or None in whole:
        return Broken(Cause.FAILURES, "no answer ended well enough to be measured")
    (first_a, first_b), (total_a, total_b) = ([value or 0.0 for value in pair] for pair in (ttft, whole))
    added = total_b - total_a
    # Where load added nothing worth the name, ask which phase is the longer one in the first place.
    share = (first_b - first_a) / added if added > total_a / 10 else first_b / total_b
    return _first_token_cause(single, broken) if share >= 0.5 else _decode_cause(single, broken)
