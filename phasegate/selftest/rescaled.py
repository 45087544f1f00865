"""Part 2: sessions that were really measured, some left out as a candidate; unchanged, and with one metric slowed.

The baseline is what is left, in its order. Unchanged splits must raise no more alarms than the policy allows. Then one
metric of one workload is multiplied by 1 + tolerance in the left-out sessions: where the gate said beforehand that it
would find that much (its minimum detectable effect), it must, and in the right phase. Where it said that it would not,
missing it is no fault, but it is told: that comparison needs more sessions.

Splits share sessions and are not independent, and a left-out session has neighbours on both sides in time, so that
a host that drifts is judged more kindly here than by tomorrow's build.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult
from phasegate.gate.window import choose_window
from phasegate.selftest.check import Check, Count
from phasegate.selftest.sequence import raises_alarm, regressions
from phasegate.session import Measurement, Session
from phasegate.stats.compare_types import CompareSettings
from phasegate.units import format_percent

PART = "re-scaled"

LEAST_SESSIONS = 5
"""Sessions below which nothing is left to judge by once two are taken out."""

SPLITS = 60
"""Most splits that are judged unchanged."""

SLOWED_SPLITS = 4
"""Most splits in which each gated metric is slowed."""


@dataclass(frozen=True, slots=True)
class Split:
    """Some sessions as a baseline and a candidate."""

    baseline: tuple[Session, ...]
    candidate: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class Detection:
    """How often one slowed metric was found.

    Attributes:
        workload, metric, phase: what was slowed.
        tolerance: by how much, as a fraction.
        mde: the median minimum detectable effect, as a fraction; inf where nothing would be found.
        found: in how many of ``tried`` splits it was found with its phase.
        promised: in how many splits the gate had said that it would be.
        broken: in how many of those it was not.
    """

    workload: str
    metric: str
    phase: str
    tolerance: float
    mde: float
    tried: int
    found: int
    promised: int
    broken: int


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What came of one set of sessions.

    Attributes:
        source: where the sessions came from.
        sessions: how many were used.
        left_out: how many of them were the candidate.
        alarms: unchanged splits that raised an alarm.
        detections: one for each gated comparison.
    """

    source: str
    sessions: int
    left_out: int
    alarms: Count
    detections: tuple[Detection, ...]

    def checks(self, policy: Policy) -> list[Check]:
        """The two things that must hold."""
        return [self._unchanged(policy), self._slowed()]

    def _unchanged(self, policy: Policy) -> Check:
        too_many = self.alarms.exceeds(policy.alpha)
        return Check(
            part=PART,
            name=f"{self.source}: {self.left_out} of {self.sessions} sessions left out, unchanged",
            wanted=f"alarms in at most {100 * policy.alpha:g} %",
            got=str(self.alarms),
            holds=not too_many,
            remedy="these sessions differ by more than noise; look for a change of level among them"
            if too_many
            else "",
        )

    def _slowed(self) -> Check:
        promised, broken = sum(one.promised for one in self.detections), sum(one.broken for one in self.detections)
        tried, found = sum(one.tried for one in self.detections), sum(one.found for one in self.detections)
        blind = [one for one in self.detections if one.promised < one.tried]
        return Check(
            part=PART,
            name=f"{self.source}: one metric slowed by its tolerance",
            wanted=f"found in the {promised} cases in which the MDE says so",
            got=f"{promised - broken} of {promised}; {found} of all {tried}",
            holds=tried > 0 and not too_often(broken, promised),
            remedy=self._remedy(tried, broken, blind),
        )

    def _remedy(self, tried: int, broken: int, blind: Sequence[Detection]) -> str:
        if tried == 0:
            return "nothing gates under this policy, so nothing can be found; see gate and rules in it"
        if broken:
            worst = max(self.detections, key=lambda one: one.broken)
            return f"missed although promised: {worst.workload} {worst.metric}, {worst.broken} of {worst.promised}"
        if blind:
            return (
                f"{len(blind)} of {len(self.detections)} gated comparisons cannot be sure to see their tolerance with "
                f"{self.left_out} candidate sessions; record more sessions"
            )
        return ""


def too_often(broken: int, promised: int) -> bool:
    """Whether promises were broken more often than their power allows for."""
    return promised > 0 and Count.of(broken, promised).exceeds(1.0 - CompareSettings().power)


def usable(sessions: Sequence[Session], policy: Policy) -> list[Session]:
    """The newest undisturbed sessions of one level, as a candidate would be judged by."""
    return list(choose_window([one for one in sessions if one.disturbed is None], policy, policy.window).sessions)


def rescale(source: str, sessions: Sequence[Session], policy: Policy, seed: int) -> Rescaled:
    """Judge splits of some sessions, unchanged and with each gated metric slowed in turn.

    Raises:
        ValueError: fewer than `LEAST_SESSIONS` sessions.
    """
    if len(sessions) < LEAST_SESSIONS:
        raise ValueError(f"{source}: {len(sessions)} sessions; at least {LEAST_SESSIONS} are needed to leave some out")
    left_out = min(policy.session_budget, max(policy.candidate_minimum, len(sessions) // 4))
    splits = list(_splits(sessions, left_out, np.random.default_rng([seed, len(sessions)])))
    results = [_judged(split, policy) for split in splits]
    pairs = list(zip(splits, results, strict=True))[:SLOWED_SPLITS]
    alarms = Count.of(sum(raises_alarm(result) for result in results), len(results))
    return Rescaled(source, len(sessions), left_out, alarms, tuple(_detections(pairs, policy)))


def _splits(sessions: Sequence[Session], left_out: int, rng: np.random.Generator) -> Iterator[Split]:
    """Different splits in random order, at most `SPLITS`."""
    seen: set[frozenset[int]] = set()
    everything = range(len(sessions))
    if math.comb(len(sessions), left_out) <= SPLITS:
        chosen = [frozenset(one) for one in itertools.combinations(everything, left_out)]
        order = [chosen[int(index)] for index in rng.permutation(len(chosen))]
    else:
        while len(seen) < SPLITS:
            seen.add(frozenset(int(one) for one in rng.choice(len(sessions), left_out, replace=False)))
        order = list(seen)
    for out in order:
        yield Split(
            tuple(sessions[index] for index in everything if index not in out),
            tuple(sessions[index] for index in everything if index in out),
        )


def _judged(split: Split, policy: Policy) -> GateResult:
    return judge(split.baseline, split.candidate, policy)


def _detections(pairs: Sequence[tuple[Split, GateResult]], policy: Policy) -> Iterator[Detection]:
    gated: dict[tuple[str, str], None] = {}
    for _, result in pairs:
        gated.update({(row.workload, row.metric): None for row in result.findings if row.gated and row.mde is not None})
    for workload, metric in gated:
        tries = [
            (row, _finds(split, row, policy))
            for split, result in pairs
            for row in result.findings
            if (row.workload, row.metric) == (workload, metric) and row.gated and row.tolerance
        ]
        yield _detection(tries)


def _detection(tries: Sequence[tuple[Finding, bool]]) -> Detection:
    rows = [row for row, _ in tries]
    promised = [found for row, found in tries if _promises(row)]
    return Detection(
        workload=rows[0].workload,
        metric=rows[0].metric,
        phase=rows[0].phase,
        tolerance=max(row.tolerance or 0.0 for row in rows),
        mde=float(np.median([math.inf if row.mde is None else row.mde for row in rows])),
        tried=len(tries),
        found=sum(found for _, found in tries),
        promised=len(promised),
        broken=promised.count(False),
    )


def _promises(row: Finding) -> bool:
    """Whether the gate said that it would find a worsening of the tolerance."""
    return row.mde is not None and row.tolerance is not None and row.mde <= row.tolerance


def _finds(split: Split, row: Finding, policy: Policy) -> bool:
    """Whether the row turns red, with its own phase, once its metric is slowed by its tolerance."""
    assert row.tolerance is not None
    candidate = [_slowed(session, row, 1.0 + row.tolerance, policy) for session in split.candidate]
    red = regressions(judge(split.baseline, candidate, policy))
    return any((one.workload, one.metric, one.phase) == (row.workload, row.metric, row.phase) for one in red)


def _slowed(session: Session, row: Finding, factor: float, policy: Policy) -> Session:
    return replace(
        session, measurements=tuple(_worse(one, row, factor, policy) for one in session.measurements)
    )  # fmt: skip


def _worse(one: Measurement, row: Finding, factor: float, policy: Policy) -> Measurement:
    facts = policy.facts(one.metric)
    if facts is None or one.workload != row.workload or facts.name != row.metric.split(":")[0]:
        return one
    scale = factor if facts.better.value == "lower" else 1.0 / factor
    return replace(one, samples=tuple(value * scale for value in one.samples))


def detection_line(one: Detection) -> str:
    """A detection in one line, for lists."""
    mde = "nothing" if math.isinf(one.mde) else format_percent(one.mde)
    return f"{one.workload} {one.metric} +{format_percent(one.tolerance)}: found {one.found} of {one.tried}, MDE {mde}"
