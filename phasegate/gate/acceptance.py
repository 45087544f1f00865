"""Which sessions may become a baseline: only those that every validity check would let through, as either side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasegate.core.session import Session
from phasegate.gate.binding import binding_phase
from phasegate.gate.comparable import differing_keys, say_differences
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy
from phasegate.gate.question import questions
from phasegate.gate.validity import problem_of


def refusals(sessions: Sequence[Session], policy: Policy) -> tuple[str, ...]:
    """Why these sessions must not be recorded, one sentence each; empty where they may be.

    A session is judged alone, since a good one must not carry a bad one into the baseline.
    """
    found = list(_one_server(sessions))
    for session in sessions:
        found += [f"session {session.session_id}: {reason}" for reason in _of_one(session, policy)]
        missing = _known(sessions) - _known([session])
        if missing:
            found.append(
                f"session {session.session_id}: did not measure {', '.join(sorted(missing))}, which others did"
            )
    return tuple(dict.fromkeys(found))


def _one_server(sessions: Sequence[Session]) -> Iterator[str]:
    if not sessions:
        yield "nothing was measured"
    for session in sessions[1:]:
        differences = differing_keys(sessions[0].server, session.server)
        if differences:
            yield f"the sessions come from different servers: {say_differences(differences)}"


def _of_one(session: Session, policy: Policy) -> Iterator[str]:
    if session.disturbed is not None:
        yield f"it was disturbed: {session.disturbed}"
    if not session.measurements:
        yield "it measured nothing"
    side = Side.of([session])
    binding = {workload: binding_phase(side, workload, policy) for workload in side.workloads()}
    for question in questions(side, side, binding, policy):
        problem = problem_of(question, side, side, policy)
        if problem is not None:
            yield problem.reason


def _known(sessions: Sequence[Session]) -> set[str]:
    return {f"{one.workload} {one.metric}" for session in sessions for one in session.measurements}
