"""A diagnosis of two sittings that a gate compared: it calls slower what the gate proved, in the figures of its rows.

The gate judges by a window of the stored sessions and leaves disturbed ones out; its rows hold the medians that it
compared. They take the place of the medians over all sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from phasegate.core.session import Session
from phasegate.diagnose.from_sessions import observations_of_sessions
from phasegate.diagnose.observations import Ask, Observations
from phasegate.diagnose.proof import Proof
from phasegate.diagnose.rules import Diagnosis, diagnose
from phasegate.gate.verdict import Finding, GateResult

PROVEN = 0.02
"""Smallest growth that is explained where the gate has proven one: smaller ones are no gate's tolerance."""


def diagnose_gated(
    result: GateResult, baseline: Sequence[Session], candidate: Sequence[Session], now: Observations
) -> Diagnosis:
    """The diagnosis of what was measured, and of what a gate proved slower, if anything.

    The changes are those that the gate's rows compare: a run's own figures are one sitting of many.

    Args:
        result: what the gate said of the two sides.
        now: what was measured.
    """
    before, after = sides_of_gate(baseline, candidate, result.findings)
    return diagnose(now, before, least=PROVEN, after=after, proof=Proof.of(result.findings))


def sides_of_gate(
    baseline: Sequence[Session], candidate: Sequence[Session], findings: Sequence[Finding]
) -> tuple[Observations, Observations]:
    """Before and after, as the gate compared them."""
    return (
        _with_rows(observations_of_sessions(baseline), findings, lambda row: row.baseline_value),
        _with_rows(observations_of_sessions(candidate), findings, lambda row: row.candidate_value),
    )


def _with_rows(
    side: Observations, findings: Sequence[Finding], value: Callable[[Finding], float | None]
) -> Observations:
    return replace(side, asks=tuple(_with_values(ask, findings, value) for ask in side.asks))


def _with_values(ask: Ask, findings: Sequence[Finding], value: Callable[[Finding], float | None]) -> Ask:
    rows = [row for row in findings if row.workload == ask.name]
    values = {row.metric: found for row in rows if (found := value(row)) is not None}
    if not values:
        return ask
    return replace(
        ask,
        ttft=values.get("ttft", ask.ttft),
        ttfo=values.get("ttfo", ask.ttfo),
        tpot=values.get("tpot", ask.tpot),
        # A total that no row has is one of other sessions: the decode that is left of it would belong to neither.
        total=values.get("e2el"),
    )
