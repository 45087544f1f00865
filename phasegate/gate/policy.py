"""The policy: every number that decides a verdict, with its default and where it came from.

A policy file overrides defaults; within it, rules for a phase, workload or metric override the general values, the
last rule that matches winning. Whatever applied can be asked for together with its source, so that a report can say
"tolerance 5.0 % (default)" or "tolerance 20.0 % (policy.yaml:12)".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from phasegate.gate.facts import MetricFacts, facts_of
from phasegate.gate.slo import Objective

T = TypeVar("T")

DEFAULT = "default"
"""The source of a value that no file set."""


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value and where it came from: ``default`` or ``file:line``."""

    value: T
    source: str = DEFAULT


@dataclass(frozen=True, slots=True)
class Rule:
    """Values for some comparisons only; None leaves the general value.

    Attributes:
        workload: glob over workload names.
        metric: short name, or None for every metric.
        phase: ``prefill``, ``decode`` or ``both``, or None for every phase.
        tolerance: fraction.
        fail_from: fraction.
        floor: in the metric's unit.
        percentiles: percentiles to compare, in per cent.
        gate: ``binding``, ``always`` or ``never``.
        lines: key -> ``file:line``.
    """

    workload: str = "*"
    metric: str | None = None
    phase: str | None = None
    tolerance: float | None = None
    fail_from: float | None = None
    floor: float | None = None
    percentiles: tuple[float, ...] | None = None
    gate: str | None = None
    lines: Mapping[str, str] = field(default_factory=dict)

    def matches(self, workload: str, metric: str, phase: str) -> bool:
        """Whether the rule speaks of this comparison."""
        return (
            glob_matches(self.workload, workload)
            and self.metric in (None, metric)
            and self.phase in (None, phase)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Applied:
    """What the policy says about one comparison, each value with its source."""

    tolerance: Sourced[float]
    fail_from: Sourced[float | None]
    floor: Sourced[float]
    percentiles: Sourced[tuple[float, ...]]
    gate: Sourced[str]

    def times(self, factor: float, why: str) -> Applied:
        """The same with a tolerance so many times as wide, and what goes with it; ``why`` joins the source."""
        tolerance = Sourced(self.tolerance.value * factor, f"{self.tolerance.source}, {why}")
        own = self.fail_from.value
        return replace(
            self, tolerance=tolerance, fail_from=replace(self.fail_from, value=None if own is None else own * factor)
        )

    def effective_fail_from(self, baseline_value: float | None) -> float:
        """From which worsening, a fraction, a proven one fails: half the effective tolerance where nothing is set."""
        if self.fail_from.value is None:
            return self.effective_tolerance(baseline_value) / 2.0
        return self.fail_from.value

    def effective_tolerance(self, baseline_value: float | None) -> float:
        """The tolerance as a fraction, widened where the absolute floor is more than that of the baseline."""
        if not baseline_value or baseline_value <= 0:
            return self.tolerance.value
        return max(self.tolerance.value, self.floor.value / baseline_value)

    def effective_source(self, baseline_value: float | None) -> str:
        """Where the effective tolerance came from."""
        if self.effective_tolerance(baseline_value) > self.tolerance.value:
            return f"floor, {self.floor.source}"
        return self.tolerance.source


@dataclass(frozen=True, slots=True)
class Policy:
    """Every number that decides a verdict. The defaults are those of a run without a policy file.

    Attributes:
        alpha: chance of a false alarm for a whole build.
        tolerance: phase -> smallest worsening that must be found, as a fraction: a comparison that could have missed it
            is undecided. A decode step is steadier than a prefill, hence the closer limit.
        fail_from: phase -> from which size, a fraction, a proven worsening fails; half the tolerance for a phase that
            is not named.
        other_phase: the phase that does not bind a workload gates as well, with its tolerance so many times as wide;
            None: it only warns.
        floor: phase -> worsening in seconds below which nothing is a regression, however large in per cent: about
            what a time stamp on a loopback socket can blur.
        percentiles: percentiles compared, in per cent.
        gate: ``binding``: the phase that decides a workload gates with its tolerance, the other by ``other_phase``;
            ``always``: both gate with their tolerance.
        baseline_minimum, candidate_minimum: sessions below which nothing passes.
        first_sessions: candidate sessions measured of every workload.
        session_budget: candidate sessions an undecided comparison may use in all.
        window: newest stored sessions that a candidate is judged by.
        inconclusive: ``fail`` or ``pass-with-warning``.
        max_error_rate: share of failed requests above which a run is invalid.
        max_unfit_rate: share of answered requests unfit for a sample (cached prompt, buffered answer, ...) above
            which a run is invalid.
        suspect_ratio: a latency below this share of its baseline is a broken measurement, not an improvement.
        sentinel: glob over workloads that measure a frozen reference, used to recognise a shift of the host.
        compare_across: fingerprint keys that may differ between the sides, for a deliberate change of settings.
        slos: objectives, judged on the candidate alone.
        metrics: metrics beyond the built-in ones.
        rules: values for some comparisons only.
        sources: key -> ``file:line`` for values that a file set.
    """

    alpha: float = 0.01
    tolerance: Mapping[str, float] = field(default_factory=lambda: {"prefill": 0.10, "decode": 0.05, "both": 0.10})
    fail_from: Mapping[str, float] = field(default_factory=dict)
    other_phase: float | None = 3.0
    floor: Mapping[str, float] = field(default_factory=lambda: {"prefill": 200e-6, "decode": 10e-6, "both": 200e-6})
    percentiles: tuple[float, ...] = (50.0,)
    gate: str = "binding"
    baseline_minimum: int = 2
    candidate_minimum: int = 2
    first_sessions: int = 2
    session_budget: int = 5
    window: int = 20
    inconclusive: str = "fail"
    max_error_rate: float = 0.05
    max_unfit_rate: float = 0.5
    suspect_ratio: float = 0.2
    sentinel: str = "sentinel*"
    compare_across: tuple[str, ...] = ()
    slos: tuple[Objective, ...] = ()
    metrics: Mapping[str, MetricFacts] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def facts(self, metric: str) -> MetricFacts | None:
        """Facts of a metric, the policy's own declarations included; None for one that nobody declared."""
        return facts_of(metric, self.metrics)

    def source(self, key: str) -> str:
        """Where the value of a key came from: ``default`` or ``file:line``."""
        return self.sources.get(key, DEFAULT)

    @property
    def inconclusive_fails(self) -> bool:
        """Whether INCONCLUSIVE ends with a failing exit status."""
        return self.inconclusive == "fail"

    def is_sentinel(self, workload: str) -> bool:
        """Whether a workload measures the frozen reference."""
        return glob_matches(self.sentinel, workload)

    def applied(self, workload: str, metric: str, phase: str) -> Applied:
        """What applies to one comparison."""
        general = phase if phase in self.tolerance else "both"
        tolerance = Sourced(self.tolerance[general], self.source(f"tolerance.{general}"))
        fail_from = Sourced(self.fail_from.get(general), self.source(f"fail-from.{general}"))
        # Rates have no floor: the general floors are spans of time.
        facts = self.facts(metric)
        is_span = facts is None or facts.is_latency
        floor = Sourced(self.floor[general], self.source(f"floor.{general}")) if is_span else Sourced(0.0)
        percentiles = Sourced(self.percentiles, self.source("percentiles"))
        gate = Sourced(self.gate, self.source("gate"))
        for rule in self.rules:
            if rule.matches(workload, metric, phase):
                if rule.tolerance is not None:
                    # What fails goes with the tolerance that it was set for.
                    fail_from = Sourced(None)
                tolerance = _override(tolerance, rule.tolerance, rule.lines.get("tolerance"))
                fail_from = _override(fail_from, rule.fail_from, rule.lines.get("fail-from"))
                floor = _override(floor, rule.floor, rule.lines.get("floor"))
                percentiles = _override(percentiles, rule.percentiles, rule.lines.get("percentiles"))
                gate = _override(gate, rule.gate, rule.lines.get("gate"))
        if fail_from.value is not None and fail_from.value > tolerance.value:
            fail_from = replace(fail_from, value=tolerance.value)
        return Applied(tolerance, fail_from, floor, percentiles, gate)

    def objectives_for(self, workload: str) -> tuple[Objective, ...]:
        """The objectives that speak of a workload."""
        return tuple(objective for objective in self.slos if glob_matches(objective.workload, workload))


def _override(general: Sourced[T], value: T | None, source: str | None) -> Sourced[T]:
    return general if value is None else Sourced(value, source or DEFAULT)


def glob_matches(pattern: str, workload: str) -> bool:
    """Whether a glob names a workload, with or without its cell.

    Cell names hold brackets (``chat[in=64,out=32]``), which a glob would read as a set of letters; so brackets stand
    for themselves here, and ``chat`` names all cells of chat.
    """
    literal = pattern.replace("[", "[[]")
    return fnmatchcase(workload, literal) or fnmatchcase(workload.split("[")[0], literal)
