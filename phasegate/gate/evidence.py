"""Asking the statistics: questions out, evidence back. The only place where the gate meets `stats`' comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phasegate.core.metric import Better
from phasegate.gate.blocks import orders
from phasegate.gate.levels import Key, Side
from phasegate.gate.policy import Policy
from phasegate.gate.question import Question
from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, CompareSettings, StoredComparison
from phasegate.stats.paired import PairedComparison, compare_paired
from phasegate.stats.resolution import grid_step
from phasegate.stats.sequential import needs_more


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the statistics say about all questions of a build.

    Attributes:
        rows: one for each question, in order.
        common_shift: one sentence where everything moved alike; None otherwise.
        needs_more: names of questions that need more candidate sessions, within the policy's budget.
    """

    rows: tuple[ComparedRow, ...] = ()
    common_shift: str | None = None
    needs_more: tuple[str, ...] = ()


def weigh_stored(
    asked: Sequence[Question], baseline: Side, candidate: Side, policy: Policy, *, planned: bool = False
) -> Weighed:
    """Put all questions to the statistics together, since they share the build's chance of a false alarm.

    ``planned`` says that the sessions follow the policy's sequence (``sessions.first``, then more of what is open up
    to ``sessions.budget``), which was fixed before anything was measured.
    """
    if not asked:
        return Weighed()
    settings = CompareSettings(
        alpha=policy.alpha,
        least_candidate=policy.candidate_minimum,
        planned_candidate=policy.session_budget if planned else None,
    )
    comparisons = [_stored(one, baseline, candidate, policy) for one in asked]
    result = compare_stored(comparisons, settings)
    more = needs_more(result.rows, comparisons, policy.session_budget) if planned else ()
    return Weighed(result.rows, result.common_shift, more)


def weigh_paired(asked: Sequence[Question], baseline: Side, candidate: Side, policy: Policy) -> Weighed:
    """The same for blocks: sessions of equal index are one block."""
    if not asked:
        return Weighed()
    settings = CompareSettings(alpha=policy.alpha, least_candidate=policy.candidate_minimum)
    result = compare_paired([_paired(one, baseline, candidate) for one in asked], settings)
    return Weighed(tuple(one.row for one in result.rows), result.common_shift)


def _paired(question: Question, baseline: Side, candidate: Side) -> PairedComparison:
    old, new = (side.levels(question.key, question.percentile) for side in (baseline, candidate))
    blocks = sorted(old.keys() & new.keys())
    order = orders([candidate.sessions[index] for index in blocks])
    return PairedComparison(
        name=question.name,
        group=question.label,
        reference=[old[index] for index in blocks],
        candidate=[new[index] for index in blocks],
        tolerance=question.tolerance,
        floor=question.applied.floor.value,
        higher_is_better=question.facts.better is Better.HIGHER,
        gated=question.gated,
        fail_from=question.fail_from,
        weight=question.weight,
        step=_step(question, baseline, candidate),
        orders=[one for one in order if one] if all(order) else (),
    )


def _stored(question: Question, baseline: Side, candidate: Side, policy: Policy) -> StoredComparison:
    old, new = (side.levels(question.key, question.percentile) for side in (baseline, candidate))
    return StoredComparison(
        name=question.name,
        group=question.label,
        baseline=list(old.values()),
        candidate=list(new.values()),
        tolerance=question.tolerance,
        floor=question.applied.floor.value,
        higher_is_better=question.facts.better is Better.HIGHER,
        gated=question.gated,
        fail_from=question.fail_from,
        weight=question.weight,
        step=_step(question, baseline, candidate),
        baseline_sentinel=_sentinel(baseline, old, policy, question.facts.name),
        candidate_sentinel=_sentinel(candidate, new, policy, question.facts.name),
    )


def _step(question: Question, baseline: Side, candidate: Side) -> float:
    """The resolution of a metric's values, read off all that were measured: medians of them hide it."""
    return grid_step(
        *([value for one in side.measurements(question.key) for value in one.samples] for side in (baseline, candidate))
    )


def _sentinel(side: Side, sessions: Iterable[int], policy: Policy, metric: str) -> list[float]:
    """The frozen reference's levels in the sessions of a comparison, or all there are where some lack it."""
    key = sentinel_key(side, policy, metric)
    if key is None:
        return []
    levels = side.levels(key)
    wanted = list(sessions)
    return [levels[index] for index in wanted] if set(wanted) <= set(levels) else list(levels.values())


def sentinel_key(side: Side, policy: Policy, metric: str) -> Key | None:
    """What measures the frozen reference: the same metric of a sentinel workload, else its first known one, or None.

    The same metric first: prefill and decode answer differently to a host, so TTFT foretells TTFT best.
    """
    known = [key for key in side.by_key if policy.is_sentinel(key[0]) and policy.facts(key[1])]
    alike = [key for key in known if (facts := policy.facts(key[1])) is not None and facts.name == metric]
    return next(iter([*alike, *known]), None)
