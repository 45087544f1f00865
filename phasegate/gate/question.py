"""What is compared: one question for each metric of each workload that either side knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from phasegate.gate.binding import BOTH, Binding
from phasegate.gate.facts import MetricFacts
from phasegate.gate.levels import Key, Side
from phasegate.gate.policy import Applied, Policy
from phasegate.stats.percentile import needed_to_leave_maximum

MEDIAN = 50.0

OTHER_WEIGHT = 0.05
"""Weight of a row whose phase does not bind, where one whose phase binds has 1, in sharing the build's chance of a
false alarm. Its tolerance is wider, so a twentieth will do for it, and the others keep their power."""


@dataclass(frozen=True, slots=True)
class Question:
    """One comparison to be made.

    Attributes:
        workload, metric: as the sessions name them.
        facts: unit, phase and direction of the metric.
        percentile: which of a session's values is compared, in per cent.
        gated: whether the answer decides the build.
        why_gated: one clause that says why it does or does not.
        applied: what the policy says about it.
        tolerance: the fraction that applies, absolute floor included.
        tolerance_source: where it came from.
        fail_from: from which worsening, a fraction, it fails where that is proven; the absolute floor comes on top.
        binds: whether it is held to its own tolerance: not so a metric of the phase that does not bind.
    """

    workload: str
    metric: str
    facts: MetricFacts
    percentile: float
    gated: bool
    why_gated: str
    applied: Applied
    tolerance: float
    tolerance_source: str
    fail_from: float
    binds: bool = True

    @property
    def weight(self) -> float:
        """Its share of the build's chance of a false alarm, in those of a row whose phase binds."""
        return 1.0 if self.binds else OTHER_WEIGHT

    @property
    def key(self) -> Key:
        """Where the sessions keep it."""
        return self.workload, self.metric

    @property
    def label(self) -> str:
        """The metric for findings: its percentile too, where that is not the median."""
        return self.facts.name if self.percentile == MEDIAN else f"{self.facts.name}:p{self.percentile:g}"

    @property
    def name(self) -> str:
        """Workload and metric, for sentences."""
        return f"{self.workload} {self.label}"

    @property
    def values_needed(self) -> int:
        """Values a session needs for this percentile to differ from the maximum: 20 for p95, 1 for the median."""
        return needed_to_leave_maximum(self.percentile) if self.percentile > MEDIAN else 1


def questions(baseline: Side, candidate: Side, binding: dict[str, Binding], policy: Policy) -> Iterator[Question]:
    """Every question, in the order of the baseline, what only the candidate knows last.

    The median of a metric of one phase gates: with its own tolerance where its phase binds, else with a wider one. A
    higher percentile gates beside it where every session has the values it needs; where not, it informs, unless the
    policy compares nothing else of the metric.
    """
    for workload, metric in dict.fromkeys([*baseline.by_key, *candidate.by_key]):
        facts = policy.facts(metric)
        if facts is None or facts.phase == "client" or policy.is_sentinel(workload):
            continue
        if not _measured((workload, metric), baseline, candidate):
            continue
        applied = policy.applied(workload, facts.name, facts.phase)
        part = _part(workload, facts, applied, binding[workload], baseline, policy)
        if part.other:
            applied = applied.times(part.times, f"times {part.times:g} since {binding[workload].phase} binds")
        for percentile in applied.percentiles.value:
            level = baseline.level((workload, metric), percentile)
            question = Question(
                workload, metric, facts, percentile, part.gated, part.why, applied,
                applied.effective_tolerance(level), applied.effective_source(level),
                applied.effective_fail_from(level), not part.other,
            )  # fmt: skip
            yield _told_if_thin(question, baseline, candidate)


@dataclass(frozen=True, slots=True)
class _Part:
    """What a metric has to do with the verdict: whether it gates, why, and with how many times its tolerance."""

    gated: bool
    why: str
    times: float = 1.0
    other: bool = False


def _part(
    workload: str, facts: MetricFacts, applied: Applied, binding: Binding, baseline: Side, policy: Policy
) -> _Part:
    if applied.gate.value == "never":
        return _Part(False, f"informs only ({applied.gate.source})")
    if applied.gate.value == "always":
        return _Part(True, f"gates always ({applied.gate.source})")
    if facts.phase == BOTH:
        parts = [name for name in ("ttft", "tpot") if (workload, name) in baseline.by_key]
        if parts:
            return _Part(False, f"informs only: {' and '.join(parts)} carry it")
        return _Part(True, "gates, since no metric of a single phase was measured")
    if binding.binds(facts.phase) or policy.other_phase is None:
        return _Part(binding.binds(facts.phase), binding.reason)
    why = f"gates with {policy.other_phase:g} times its tolerance: {binding.reason}"
    return _Part(True, why, policy.other_phase, other=True)


def _told_if_thin(question: Question, baseline: Side, candidate: Side) -> Question:
    """The question, informing only where it lacks values and the median speaks for the metric."""
    if question.percentile == MEDIAN or MEDIAN not in question.applied.percentiles.value:
        return question
    if fewest_values(question.key, baseline, candidate) >= question.values_needed:
        return question
    why = f"informs only: p{question.percentile:g} needs {question.values_needed} values a session"
    return replace(question, gated=False, why_gated=why)


def _measured(key: Key, baseline: Side, candidate: Side) -> bool:
    """Whether a metric was measured, or should have been; a request of one token has no tpot, and that is no fault."""
    old, new = baseline.measurements(key), candidate.measurements(key)
    return any(one.samples or one.failed or one.invalid for one in (*old, *new))


def fewest_values(key: Key, *sides: Side) -> int:
    """The smallest number of values that any session of any side has for a key; 0 where one side has none."""
    return min(min((len(one.samples) for one in side.measurements(key)), default=0) for side in sides)
