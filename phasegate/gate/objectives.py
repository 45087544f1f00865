"""Judging the service-level objectives of a policy on the candidate alone; no baseline is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasegate.core.session import MEDIANS_ONLY, Measurement
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy, glob_matches
from phasegate.gate.slo import Attainment, Objective, attainment, describe
from phasegate.gate.verdict import Finding, Verdict
from phasegate.stats.percentile import needed_to_leave_maximum


def judge_objectives(candidate: Side, policy: Policy) -> Iterator[Finding]:
    """One gated row for each objective and workload it speaks of.

    SLO_BREACH where the percentile of all requests, failures included as misses, lies beyond the limit. PASS only with
    enough requests for the percentile to mean something. An objective that speaks of nothing measured is
    INVALID_RUN: a promise that nobody checks is not kept.
    """
    for objective in policy.slos:
        rows = list(_rows(objective, candidate, policy))
        yield from rows
        if not rows:
            reason = (
                f"{objective.text} ({objective.source}): no {objective.metric} of {objective.workload} was measured"
            )
            advice = "measure that workload, or correct the objective"
            yield _row(objective, objective.workload, policy, Verdict.INVALID_RUN, reason, advice)


def _rows(objective: Objective, candidate: Side, policy: Policy) -> Iterator[Finding]:
    for workload, metric in candidate.by_key:
        facts = policy.facts(metric)
        if facts is None or facts.name != objective.metric or policy.is_sentinel(workload):
            continue
        if not glob_matches(objective.workload, workload):
            continue
        found = candidate.measurements((workload, metric))
        samples = [value for one in found for value in one.samples]
        if any(MEDIANS_ONLY in one.flags for one in found):
            yield _of_medians(objective, workload, policy, found)
            continue
        result = attainment(objective, samples, sum(one.failed for one in found))
        verdict, advice = _word(objective, result)
        said = f"{workload} {objective.text}: {describe(objective, result)}"
        yield _row(objective, workload, policy, verdict, said, advice, len(found))


def _of_medians(objective: Objective, workload: str, policy: Policy, found: Sequence[Measurement]) -> Finding:
    """What medians alone prove: a higher percentile lies above its median, and nothing is known of the rest."""
    levels = [value for one in found for value in one.samples]
    said = f"{workload} {objective.text}: only medians of {len(found)} sessions are known"
    if levels and objective.percentile >= 50 and min(levels) > objective.limit:
        reason = f"{said}, and the lowest of them is above the limit already"
        return _row(objective, workload, policy, Verdict.SLO_BREACH, reason, _BREACH, len(found))
    reason = f"{said}, so p{objective.percentile:g} of its requests cannot be judged"
    return _row(objective, workload, policy, Verdict.INCONCLUSIVE, reason, "give single requests", len(found))


_BREACH = "see which phase takes the time, or correct the objective"


def _word(objective: Objective, result: Attainment) -> tuple[Verdict, str]:
    needed = needed_to_leave_maximum(objective.percentile)
    if result.sent == 0:
        return Verdict.INVALID_RUN, "no request was sent; measure again"
    if result.value is None or result.value > objective.limit:
        return Verdict.SLO_BREACH, _BREACH
    if result.sent < needed:
        return Verdict.INCONCLUSIVE, f"p{objective.percentile:g} needs {needed} requests, has {result.sent}; send more"
    return Verdict.PASS, ""


def _row(
    objective: Objective, workload: str, policy: Policy, verdict: Verdict, reason: str, advice: str, sessions: int = 0
) -> Finding:
    facts = policy.facts(objective.metric)
    phase = facts.phase if facts is not None else "both"
    return Finding(
        workload, objective.text, phase, True, verdict, reason, candidate_sessions=sessions, advice=advice
    )  # fmt: skip
