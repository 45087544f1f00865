"""Remarks on what was handed to the gate: nothing that decides, but what a reader would want to have been told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from phasegate.core.session import Session
from phasegate.gate.policy import Policy, glob_matches


def same_sessions(baseline: Sequence[Session], candidate: Sequence[Session]) -> str | None:
    """A remark where sessions of the candidate are sessions of the baseline too, else None.

    Tables number their sessions from 1 and blocks are paired by their ids, so an id on both sides says nothing: the
    measured values have to be the same as well.
    """
    known = {one.session_id: one.measurements for one in baseline}
    shared = sum(1 for one in candidate if one.measurements and known.get(one.session_id) == one.measurements)
    if not shared:
        return None
    if shared == len(candidate) == len(baseline):
        return "both sides hold the same sessions, so no change can be found; see whether the right results were named"
    return (
        f"{shared} of {len(candidate)} sessions of the run are in the baseline too, so they are compared with "
        "themselves; give each side its own"
    )


def idle_rules(policy: Policy, compared: Iterable[str]) -> Iterator[str]:
    """A remark for each rule of a policy that names workloads of which none was compared.

    It is no fault: a run may measure some of the workloads only. A misspelt name looks the same, though, and leaves
    the general values in force.

    Args:
        policy: its rules.
        compared: names of the workloads that were compared.
    """
    names = set(compared)
    for rule in policy.rules:
        if not any(glob_matches(rule.workload, name) for name in names):
            where = rule.lines.get("workload", "the policy")
            yield f"{where}: the rule for {rule.workload!r} matches nothing that was compared"
