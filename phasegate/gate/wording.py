"""Evidence -> a row with its word and its sentence: what was measured on both sides, then what the statistics say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from phasegate.core.metric import Better
from phasegate.gate.level_words import level_notes
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy
from phasegate.gate.question import Question
from phasegate.gate.validity import Problem, say
from phasegate.gate.verdict import Finding, Verdict, finite
from phasegate.stats.compare_types import ComparedRow, Decision

WORDS = {
    Decision.REGRESSED: Verdict.REGRESSION,
    Decision.IMPROVED: Verdict.IMPROVED,
    Decision.WITHIN: Verdict.PASS,
    Decision.UNDECIDED: Verdict.INCONCLUSIVE,
}
"""The statistics' decision -> verdict of a row."""

OUTLIER = 2.0
"""A session whose level is this many times its side's median, or the inverse, is named in the row."""


def refused_row(question: Question, problem: Problem, baseline: Side, candidate: Side) -> Finding:
    """The row of a question that could not be put to the statistics. It always decides the build: what cannot be
    measured is a failure, not a silence."""
    return Finding(
        workload=question.workload,
        metric=question.label,
        phase=question.facts.phase,
        gated=True,
        verdict=problem.verdict,
        reason=problem.reason,
        baseline_sessions=len(baseline.levels(question.key)),
        candidate_sessions=len(candidate.levels(question.key)),
        baseline_value=baseline.level(question.key, question.percentile),
        candidate_value=candidate.level(question.key, question.percentile),
        advice=problem.advice,
    )


def weighed_row(
    question: Question, row: ComparedRow, baseline: Side, candidate: Side, policy: Policy, unit: str = "session"
) -> Finding:
    """The row of a question that the statistics answered.

    ``unit`` is what carries the evidence: ``session``, or ``block`` when paired.
    """
    old = baseline.level(question.key, question.percentile)
    # The level that was weighed: far sessions pulled in, the host's own shift taken off. The plain median could
    # contradict the change that stands beside it.
    new = old * row.ratio if old and row.ratio else candidate.level(question.key, question.percentile)
    verdict = WORDS[row.decision]
    reason = f"{question.name}: {say(old, question.facts)} -> {say(new, question.facts)}, {row.reason}"
    if verdict.green and row.baseline_count < policy.baseline_minimum:
        verdict = Verdict.INCONCLUSIVE
        missing = policy.baseline_minimum - row.baseline_count
        reason += f"; the policy wants {policy.baseline_minimum} baseline {unit}s, there are {row.baseline_count}"
        row = replace(
            row, baseline_needed=missing, remedy=f"record {missing} more baseline {unit}{'s' if missing > 1 else ''}"
        )
    return Finding(
        workload=question.workload,
        metric=question.label,
        phase=question.facts.phase,
        gated=question.gated,
        verdict=verdict,
        reason=f"{reason} [tolerance: {question.tolerance_source}]",
        ratio=row.ratio,
        ratio_low=row.low,
        ratio_high=row.high,
        p=row.p,
        binds=question.binds,
        p_allowed=row.p_allowed,
        mde=finite(row.mde),
        baseline_sessions=row.baseline_count,
        candidate_sessions=row.candidate_count,
        tolerance=question.tolerance,
        tolerance_source=question.tolerance_source,
        fails_from=_fails_from(question, row),
        sessions_needed=row.sessions_needed,
        baseline_needed=row.baseline_needed,
        remedy=row.remedy,
        baseline_value=old,
        candidate_value=new,
        advice=_advice(verdict, row.baseline_count, row.ratio, unit),
        notes=(
            *level_notes(question, row),
            *(f"{question.name}: {line}" for line in row.warnings),
            *_outliers(question, candidate, unit),
        ),
    )


def _fails_from(question: Question, row: ComparedRow) -> float | None:
    """The change of the value from which it fails, in the metric's own direction; None where it only informs."""
    if not question.gated or row.fails_from is None:
        return None
    return row.fails_from if question.facts.better is Better.LOWER else 1.0 / (1.0 + row.fails_from) - 1.0


THOUSAND = (400.0, 2500.0)
"""A change by about so many times is seldom one of speed."""


def _advice(verdict: Verdict, baseline_count: int, ratio: float | None, unit: str) -> str:
    if ratio is not None and THOUSAND[0] < ratio < THOUSAND[1]:
        return "look whether the values are in seconds: the new ones are about a thousand times the old ones"
    if verdict is Verdict.REGRESSION and unit == "block":
        return "undo the change, or, where it is accepted, let this build be the next reference"
    if verdict is Verdict.REGRESSION:
        return "undo the change, or, where it is accepted, record a new baseline"
    if verdict is Verdict.INCONCLUSIVE and baseline_count < 2 and unit == "session":
        return "record more sessions of the old build with --update-baselines, or compare both servers in one run"
    # The statistics' sentence already says how many more sessions would decide.
    return ""


def _outliers(question: Question, candidate: Side, unit: str) -> Sequence[str]:
    levels = candidate.levels(question.key, question.percentile)
    middle = candidate.level(question.key, question.percentile)
    if not middle:
        return ()
    far = [value for value in levels.values() if not middle / OUTLIER <= value <= middle * OUTLIER]
    if not far:
        return ()
    worst = max(far, key=lambda value: abs(math.log(value / middle)))
    return (
        f"{len(far)} of {len(levels)} {unit}s of {question.name} stand far off, as far as {say(worst, question.facts)} "
        f"(median {say(middle, question.facts)}); look into the tail, which a median does not judge",
    )
