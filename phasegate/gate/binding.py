"""Which phase decides a workload: from the baseline and its objectives, never from the candidate.

Where objectives speak of both phases, the one with the least headroom (limit / what the baseline attains) binds: it
breaks its promise first. Without objectives the phase that takes most of a request's time binds, by
``e2el = ttft + (n - 1) tpot``: prefill's share is ttft / e2el. Where neither takes 60 %, both bind, so that a share
near a half does not decide by chance. An objective on one phase only makes that phase bind as well; it never releases
the other, or one generous promise would open the gate for the phase that nobody made a promise about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from phasegate.core.units import format_percent
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy

PREFILL, DECODE, BOTH = "prefill", "decode", "both"

MAJORITY = 0.60
"""A phase binds alone where it takes at least this share of a request's time."""

_OUTPUT_LENGTH = re.compile(r"\bout(?:put)?=(\d+)")


@dataclass(frozen=True, slots=True)
class Binding:
    """The phase that decides a workload.

    Attributes:
        phase: ``prefill``, ``decode``, or ``both``.
        reason: one clause with the numbers in it.
    """

    phase: str
    reason: str

    def binds(self, phase: str) -> bool:
        """Whether metrics of a phase gate the workload; metrics of the whole request do where both phases bind."""
        return self.phase in (BOTH, phase)


def binding_phase(side: Side, workload: str, policy: Policy) -> Binding:
    """The phase that binds a workload on one side; ask with the baseline's sessions."""
    share, rooms = _by_share(side, workload), _rooms(side, workload, policy)
    if not rooms:
        return share
    room, phase, text = min(rooms)
    if {one[1] for one in rooms} == {PREFILL, DECODE}:
        return Binding(phase, f"{phase} binds: of its objectives {text} has the least headroom ({room:.2f} x)")
    if share.binds(phase) and share.phase != BOTH:
        return Binding(phase, f"{share.reason}; {text} has a headroom of {room:.2f} x")
    return Binding(BOTH, f"both phases gate: {text} speaks of {phase}, and {share.reason}")


def _rooms(side: Side, workload: str, policy: Policy) -> list[tuple[float, str, str]]:
    """(headroom, phase, objective) of every objective of a single phase that was measured."""
    rooms = []
    for objective in policy.objectives_for(workload):
        facts = policy.facts(objective.metric)
        attained = side.level((workload, objective.metric), objective.percentile)
        if facts is not None and facts.phase in (PREFILL, DECODE) and attained:
            rooms.append((objective.limit / attained, facts.phase, objective.text))
    return rooms


def _by_share(side: Side, workload: str) -> Binding:
    share = prefill_share(side, workload)
    if share is None:
        return Binding(BOTH, "both phases gate: their shares of a request are not known")
    said = f"prefill takes {format_percent(share, digits=0)} of a request, decode {format_percent(1 - share, digits=0)}"
    if share >= MAJORITY:
        return Binding(PREFILL, f"prefill binds: {said}")
    if share <= 1 - MAJORITY:
        return Binding(DECODE, f"decode binds: {said}")
    return Binding(BOTH, f"both phases gate: {said}")


def prefill_share(side: Side, workload: str) -> float | None:
    """Prefill's share of a request's time, from 0 to 1, or None where the sessions do not tell.

    From ttft and e2el where both were measured, else from ttft, tpot and the output length in the cell's name.
    """
    ttft, e2el = side.level((workload, "ttft")), side.level((workload, "e2el"))
    if ttft and e2el:
        return min(1.0, ttft / e2el)
    tpot, length = side.level((workload, "tpot")), output_length(workload)
    if ttft and tpot and length:
        return ttft / (ttft + (length - 1) * tpot)
    return None


def output_length(workload: str) -> int | None:
    """The output length in a cell's name (``chat[in=64,out=32]`` -> 32), or None."""
    match = _OUTPUT_LENGTH.search(workload)
    return int(match.group(1)) if match else None


def flip(baseline: Side, candidate: Side, workload: str, policy: Policy) -> str | None:
    """One sentence where the candidate would be bound by the other phase, else None."""
    old, new = binding_phase(baseline, workload, policy), binding_phase(candidate, workload, policy)
    if {old.phase, new.phase} != {PREFILL, DECODE}:
        return None
    return (
        f"{workload}: the binding phase flipped from {old.phase} to {new.phase} ({new.reason}); "
        f"this build was judged by what binds its baseline, the next baseline will be bound by {new.phase}"
    )
