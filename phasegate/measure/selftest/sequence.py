"""The gate's own sequence on sessions that exist already: the first few candidate sessions, then more where needed.

Follows `compare_runs.gate_stored` step by step; only the measuring is replaced by taking the next session from a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phasegate.core.session import Session
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult, Verdict


def judge_in_sequence(baseline: Sequence[Session], available: Sequence[Session], policy: Policy) -> GateResult:
    """The verdict on a candidate whose sessions are taken from ``available`` in order, as the policy's plan asks.

    As in a real run only workloads with an open comparison appear in the later sessions.

    Raises:
        ValueError: fewer sessions are available than the policy's budget.
    """
    if len(available) < policy.session_budget:
        raise ValueError(f"the policy's plan takes {policy.session_budget} sessions, got {len(available)}")
    taken = list(available[: policy.first_sessions])
    result = judge(baseline, taken, policy, planned=True)
    if result.needs_more:
        open_still = {_family(cell) for cell in result.needs_more}
        taken += [_only(one, open_still) for one in available[policy.first_sessions : policy.session_budget]]
        result = judge(baseline, taken, policy, planned=True)
    return result


def regressions(result: GateResult) -> list[Finding]:
    """The gated rows that regressed against the baseline; a breached objective is none."""
    return [row for row in result.findings if row.gated and row.verdict is Verdict.REGRESSION]


def raises_alarm(result: GateResult) -> bool:
    """Whether a build of an unchanged server is stopped for a reason that waiting or measuring would not cure."""
    return bool(regressions(result)) or result.verdict in (Verdict.INVALID_RUN, Verdict.INVALID_BASELINE)


def _family(cell: str) -> str:
    """The workload of a cell: it is measured whole or not at all."""
    return cell.split("[")[0]


def _only(session: Session, families: set[str]) -> Session:
    return replace(
        session, measurements=tuple(one for one in session.measurements if _family(one.workload) in families)
    )
