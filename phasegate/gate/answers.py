"""From questions to rows: refused where a check says so, weighed by the statistics otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phasegate.gate.evidence import Weighed, weigh_paired, weigh_stored
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy
from phasegate.gate.question import Question, fewest_values
from phasegate.gate.validity import Problem, other_units, problem_of
from phasegate.gate.verdict import Finding, Verdict
from phasegate.gate.wording import refused_row, weighed_row


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of a build and what the statistics say about all of them.

    Attributes:
        rows: one for each question, in order.
        common_shift: one sentence where everything moved alike; None otherwise.
        needs_more: workloads with a gated comparison that needs more candidate sessions.
    """

    rows: tuple[Finding, ...]
    common_shift: str | None
    needs_more: tuple[str, ...]


def answer(
    asked: Sequence[Question],
    baseline: Side,
    candidate: Side,
    policy: Policy,
    *,
    paired: bool = False,
    planned: bool = False,
    stopped: str | None = None,
) -> Answers:
    """Answer all questions of a build together; ``stopped`` says which limit ended the run early, if any."""
    problems = _problems(asked, baseline, candidate, policy, stopped)
    fair = [question for question in asked if question not in problems]
    if paired:
        weighed = weigh_paired(fair, baseline, candidate, policy)
    else:
        weighed = weigh_stored(fair, baseline, candidate, policy, planned=planned)
    unit = "block" if paired else "session"
    answered = dict(zip(fair, weighed.rows, strict=True))
    rows = tuple(
        _refused(question, problems[question], baseline, candidate)
        if question in problems
        else weighed_row(question, answered[question], baseline, candidate, policy, unit)
        for question in asked
    )
    return Answers(rows, weighed.common_shift, _needing(fair, weighed))


def _needing(fair: Sequence[Question], weighed: Weighed) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.workload for one in fair if one.gated and one.name in weighed.needs_more))


def _problems(
    asked: Sequence[Question], baseline: Side, candidate: Side, policy: Policy, stopped: str | None
) -> dict[Question, Problem]:
    """The questions that must not be put to the statistics, and why."""
    problems: dict[Question, Problem] = {}
    for question in asked:
        problem = (
            _not_reached(question, baseline, candidate, stopped)
            or problem_of(question, baseline, candidate, policy)
            or _too_thin(question, baseline, candidate)
        )
        if problem is not None:
            problems[question] = problem
    fair = [question for question in asked if question not in problems]
    units = other_units([question.key for question in fair], baseline, candidate)
    return problems if units is None else {**problems, **dict.fromkeys(fair, units)}


def _not_reached(question: Question, baseline: Side, candidate: Side, stopped: str | None) -> Problem | None:
    """Why a run that a limit ended has no values of a question, or None."""
    if stopped is None or candidate.measurements(question.key) or not baseline.measurements(question.key):
        return None
    return Problem(Verdict.INCONCLUSIVE, f"{question.name} was not measured: {stopped}", "allow the run more")


def _too_thin(question: Question, baseline: Side, candidate: Side) -> Problem | None:
    """Why a percentile cannot be read off so few requests, or None."""
    fewest = fewest_values(question.key, baseline, candidate)
    if fewest >= question.values_needed:
        return None
    reason = (
        f"{question.name}: p{question.percentile:g} needs {question.values_needed} values a session to differ from the "
        f"maximum, a session has {fewest}"
    )
    return Problem(Verdict.INCONCLUSIVE, reason, "send more requests a session, or compare the median")


def _refused(question: Question, problem: Problem, baseline: Side, candidate: Side) -> Finding:
    row = refused_row(question, problem, baseline, candidate)
    # A thin percentile beside a gated median only informs; every other refusal decides the build.
    return replace(row, gated=question.gated) if problem.verdict is Verdict.INCONCLUSIVE else row
