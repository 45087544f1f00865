"""The gate's result in the document: every row with the values of its sessions, and the trend over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasegate.core.metric import Better
from phasegate.core.session import Session
from phasegate.gate.blocks import orders
from phasegate.gate.facts import MetricFacts
from phasegate.gate.levels import Key, Side
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult
from phasegate.report.document.model import Gate, Row, Trend, TrendPoint
from phasegate.report.document.numbers import finite

NEWEST = 40
"""Sessions that a trend shows at most."""


def gate_of(
    result: GateResult, baseline: Sequence[Session], candidate: Sequence[Session], policy: Policy, *, paired: bool
) -> Gate:
    """The gate as the document keeps it."""
    old, new = (Side.of([one for one in side if one.disturbed is None]) for side in (baseline, candidate))
    return Gate(
        verdict=result.verdict.value,
        reason=result.reason,
        against="a reference measured beside it" if paired else "stored sessions",
        unit="block" if paired else "session",
        expected=result.coverage.expected,
        compared=result.coverage.compared,
        rows=tuple(_row(finding, old, new, policy) for finding in result.findings),
        warnings=result.warnings,
        binding={workload: str(why) for workload, why in result.binding.items()},
        attributions=tuple(result.attributions.values()),
        lever=result.lever,
    )


def _row(finding: Finding, old: Side, new: Side, policy: Policy) -> Row:
    name, percentile = _parts(finding.metric)
    facts = policy.facts(name)
    before, after = (list(_levels(side, finding.workload, name, percentile, policy).values()) for side in (old, new))
    return Row(
        workload=finding.workload,
        metric=finding.metric,
        phase=finding.phase,
        unit=facts.unit if facts is not None else "",
        better=_better(facts),
        gated=finding.gated,
        verdict=finding.verdict.value,
        reason=finding.reason,
        advice=finding.advice,
        notes=finding.notes,
        ratio=finite(finding.ratio),
        ratio_low=finite(finding.ratio_low),
        ratio_high=finite(finding.ratio_high),
        p=finite(finding.p),
        mde=finite(finding.mde),
        tolerance=finite(finding.tolerance),
        tolerance_source=finding.tolerance_source,
        baseline_value=finite(finding.baseline_value),
        candidate_value=finite(finding.candidate_value),
        baseline_sessions=finding.baseline_sessions,
        candidate_sessions=finding.candidate_sessions,
        baseline_levels=tuple(before),
        candidate_levels=tuple(after),
        p_allowed=finite(finding.p_allowed),
        fails_from=finite(finding.fails_from),
        sessions_needed=finding.sessions_needed,
        baseline_needed=finding.baseline_needed,
        remedy=finding.remedy,
    )


def _better(facts: MetricFacts | None) -> str:
    return facts.better.value if facts is not None else Better.LOWER.value


def _parts(metric: str) -> tuple[str, float]:
    """Name and percentile of a row's metric: ``ttft:p95:500ms`` -> (ttft, 95)."""
    name, *rest = metric.split(":")
    percentile = float(rest[0].removeprefix("p")) if rest and rest[0].startswith("p") else 50.0
    return name, percentile


def _key(side: Side, workload: str, metric: str, policy: Policy) -> Key:
    """The key under which a side keeps a metric: sessions of other tools may use its long name."""
    alike = (key for key in side.by_key if key[0] == workload and _short(key[1], policy) == _short(metric, policy))
    return next(alike, (workload, metric))


def _short(metric: str, policy: Policy) -> str:
    facts = policy.facts(metric)
    return facts.name if facts is not None else metric


def _levels(side: Side, workload: str, metric: str, percentile: float, policy: Policy) -> dict[int, float]:
    return side.levels(_key(side, workload, metric, policy), percentile)


def trends_of(
    gate: Gate | None, baseline: Sequence[Session], candidate: Sequence[Session], policy: Policy
) -> tuple[Trend, ...]:
    """Every compared metric over the sessions, gated ones first; without a gate every metric of the sessions.

    The newest `NEWEST` sessions of either side are shown.
    """
    paired = gate is not None and gate.unit == "block"
    words = ("reference", "candidate") if paired else ("baseline", "now")
    sides = [(Side.of(list(side)[-NEWEST:]), word) for side, word in zip((baseline, candidate), words, strict=True)]
    return tuple(
        trend
        for workload, metric, gated in _wanted(gate, sides[1][0])
        if len((trend := _trend(sides, workload, metric, policy, gated=gated)).points) > 1
    )


def _wanted(gate: Gate | None, side: Side) -> Iterator[tuple[str, str, bool]]:
    if gate is not None and gate.rows:
        yield from dict.fromkeys(
            (row.workload, row.metric, row.gated) for row in gate.rows if row.metric.count(":") < 2
        )
    else:
        yield from ((workload, metric, False) for workload, metric in side.by_key)


def _trend(sides: Sequence[tuple[Side, str]], workload: str, metric: str, policy: Policy, *, gated: bool) -> Trend:
    name, percentile = _parts(metric)
    facts = policy.facts(name)
    points = [
        TrendPoint(side.sessions[index].session_id, side.sessions[index].recorded_at, value, word)
        for side, word in sides
        for index, value in _levels(side, workload, name, percentile, policy).items()
    ]
    unit, phase = (facts.unit, facts.phase) if facts is not None else ("", "both")
    return Trend(workload, metric, unit, phase, gated, tuple(points), _orders(sides, workload, name, policy))


def _orders(sides: Sequence[tuple[Side, str]], workload: str, metric: str, policy: Policy) -> tuple[str, ...]:
    """The order of each block; empty where the sides are no blocks."""
    (old, word), (new, _) = sides
    if word != "reference":
        return ()
    by_block = dict(zip((one.session_id for one in new.sessions), orders(new.sessions), strict=True))
    shown = _levels(old, workload, metric, 50.0, policy)
    return tuple(by_block.get(old.sessions[index].session_id) or "" for index in shown)
