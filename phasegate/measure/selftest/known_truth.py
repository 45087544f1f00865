"""Part 1: planted slowdowns with known truth. Every one must be found in its phase; unchanged engines must pass by.

Most sessions come from the simulator's model of time, without waiting. One pass is truly measured (`measured`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from phasegate.core.session import Session
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult, Verdict
from phasegate.measure.selftest.check import Check
from phasegate.measure.selftest.plants import NOISE, PLANTS, UNCHANGED, Plant, workloads
from phasegate.measure.selftest.sequence import judge_in_sequence, regressions
from phasegate.measure.selftest.simulated import simulated_sessions

PART = "simulated"

BASELINE_SESSIONS = 12
REQUESTS = 8
"""Requests of each cell in a simulated session."""

CANDIDATES = 3
"""Candidates with each planted change, each of sessions of its own."""


def for_simulator(policy: Policy) -> Policy:
    """The policy without its objectives: they make promises about the user's server, not about the simulator."""
    return replace(policy, slos=())


def simulated_baseline(seed: int) -> list[Session]:
    """The simulated sessions that all simulated candidates are judged by."""
    return simulated_sessions(NOISE.changed(seed=seed), workloads(REQUESTS), BASELINE_SESSIONS)


def simulated_checks(policy: Policy, seed: int) -> list[Check]:
    """Judge unchanged and slowed candidates on the simulator's model of time."""
    policy = for_simulator(policy)
    asked, own = workloads(REQUESTS), NOISE.changed(seed=seed)
    baseline = simulated_baseline(seed)
    following = BASELINE_SESSIONS
    checks = []
    for plant in (UNCHANGED, *PLANTS):
        results = []
        for _ in range(CANDIDATES):
            sessions = simulated_sessions(own.changed(**plant.changes), asked, policy.session_budget, following)
            following += policy.session_budget
            results.append(judge_in_sequence(baseline, sessions, policy))
        checks.append(planted_check(PART, plant, results))
    return checks


def planted_check(part: str, plant: Plant, results: Sequence[GateResult]) -> Check:
    """Whether every candidate with a plant was judged as it must be."""
    problems = [problem for result in results if (problem := misjudged(plant, result))]
    right = len(results) - len(problems)
    return Check(
        part=part,
        name=plant.name,
        wanted=_wanted(plant),
        got=f"{right} of {len(results)}: {_verdicts(results)}",
        holds=not problems,
        remedy=problems[0] if problems else "",
    )


def misjudged(plant: Plant, result: GateResult) -> str | None:
    """What is wrong with the verdict on a candidate with that plant, in one sentence, or None."""
    rows = regressions(result)
    if plant.metric is None:
        return f"a false alarm: {rows[0].reason}" if rows else _other_red(result)
    if result.verdict is not Verdict.REGRESSION:
        return f"not found: {_why_missed(plant, result)}"
    astray = [row for row in rows if not _expected(plant, row)]
    if astray:
        return f"found in the wrong place: {astray[0].workload} {astray[0].metric} ({astray[0].phase})"
    return None


def _other_red(result: GateResult) -> str | None:
    red = result.verdict not in (Verdict.PASS, Verdict.IMPROVED, Verdict.INCONCLUSIVE)
    return f"the gate says {result.verdict.value}: {result.reason}" if red else None


def _expected(plant: Plant, row: Finding) -> bool:
    """Whether a regressed row is one that the plant explains. A whole request gets slower with any phase of it."""
    return row.phase in (plant.phase, "both") and row.workload.endswith(plant.only)


def _why_missed(plant: Plant, result: GateResult) -> str:
    """The gate's own words about the row that should have been red."""
    rows = [row for row in result.findings if row.metric == plant.metric and row.workload.endswith(plant.only)]
    gated = [row for row in rows if row.gated]
    if gated:
        return f"{gated[0].reason} (tolerance {gated[0].tolerance_source or 'default'})"
    if rows:
        return f"no {plant.metric} gates under this policy; see gate and rules in it"
    return f"the gate says {result.verdict.value}: {result.reason}"


def _wanted(plant: Plant) -> str:
    return "no REGRESSION" if plant.metric is None else f"REGRESSION in {plant.phase} ({plant.metric})"


def _verdicts(results: Sequence[GateResult]) -> str:
    said: Counter[str] = Counter()
    for result in results:
        phases = sorted({row.phase for row in regressions(result)})
        said[f"{result.verdict.value} {' and '.join(phases)}".rstrip()] += 1
    return ", ".join(f"{count} x {word}" for word, count in said.items())
