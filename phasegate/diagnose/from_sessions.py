"""The situation in stored sessions: their session files, tables and other tools' results, which keep no single request.

They know medians of TTFT, TPOT and the total by workload, lengths where a workload's name tells them, and of our own
sessions what the server told of itself. What needs single requests (gaps, steps, load) is not in them and stays
unmeasured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from phasegate.core.session import Session
from phasegate.diagnose.from_runs import AGAIN, FIRST_ROLES, limits_of
from phasegate.diagnose.observations import Ask, CacheCalls, Observations
from phasegate.diagnose.session_times import LABEL, with_own_times
from phasegate.gate.levels import Side
from phasegate.gate.slo import Objective


def observations_of_sessions(sessions: Sequence[Session], objectives: Iterable[Objective] = ()) -> Observations:
    """What some sessions of one server measured: medians of the sessions' levels."""
    side = Side.of(sessions)
    return Observations(
        asks=tuple(_ask(side, workload) for workload in side.workloads() if _role(workload) in FIRST_ROLES),
        caches=tuple(calls for workload in side.workloads() if (calls := _calls(side, workload)) is not None),
        limits=limits_of(objectives),
        host=tuple(dict.fromkeys(one.disturbed for one in sessions if one.disturbed is not None)),
    )


def _role(workload: str) -> str:
    match = LABEL.match(workload)
    return (match["role"] or "cold") if match else "cold"


def _ask(side: Side, workload: str) -> Ask:
    match = LABEL.match(workload)
    ask = Ask(
        name=workload,
        prompt_tokens=int(match["tokens"]) if match else None,
        output_tokens=float(match["out"]) if match else None,
        ttft=side.level((workload, "ttft")),
        ttfo=side.level((workload, "ttfo")),
        tpot=side.level((workload, "tpot")),
        total=side.level((workload, "e2el")),
    )
    return with_own_times(ask, side)


def _calls(side: Side, workload: str) -> CacheCalls | None:
    """A cold call and its repetition; where only a part is shared, its length is not stored, so nothing is said."""
    match = LABEL.match(workload)
    if match is None or match["role"] is not None:
        return None
    stem = workload.removesuffix("]")
    first, again, control = (
        side.level((name, "ttft")) for name in (workload, f"{stem},{AGAIN['cold']}]", f"{stem},control]")
    )
    if not first or not again:
        return None
    tokens = int(match["tokens"])
    return CacheCalls(workload, tokens, tokens, first, again, control)
