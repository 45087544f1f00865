"""Part 2: sessions that were really measured, some left out as a candidate; unchanged, and with one metric slowed.

The baseline is what is left, in its order. Alarms of unchanged splits are counted; the A/A builds judge them. Then one
metric of one workload is multiplied by 1 + tolerance in the left-out sessions: where the gate said beforehand that it
would find that much (its minimum detectable effect), it must, and in the right phase. Where it said that it would not,
missing it is no fault, but it is told: that comparison needs more sessions.

Splits share sessions and are not independent, and a left-out session has neighbours on both sides in time, so that
a host that drifts is judged more kindly here than by tomorrow's build.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phasegate.core.session import Measurement, Session
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Finding, GateResult
from phasegate.gate.window import choose_window
from phasegate.measure.selftest.check import Check, Count
from phasegate.measure.selftest.sequence import raises_alarm, regressions
from phasegate.stats.compare_types import CompareSettings

PART = "re-scaled"

LEAST_SESSIONS = 5
"""Sessions below which nothing is left to judge by once two are taken out."""

SPLITS = 60
"""Most splits that are judged unchanged."""

SLOWED_SPLITS = 6
"""Most splits in which each gated metric is slowed: one broken promise in 6 agrees with a power of 99 %, two do not."""

HALF = 0.5 + 1e-9
"""From which share of the tolerance a proven slowdown fails by default."""


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
        broken: splits in which a slowed metric was missed although the gate had promised to find it. Splits are
            counted, not metrics: those of one split share what their sessions did.
        detections: one for each gated comparison.
    """

    source: str
    sessions: int
    left_out: int
    alarms: Count
    broken: Count
    detections: tuple[Detection, ...]

    def remark(self) -> str:
        """What the unchanged splits gave. They share sessions, so their share of alarms is no rate of false alarms."""
        return (
            f"{self.source}: {self.left_out} of {self.sessions} sessions left out unchanged, {self.alarms.hits} of "
            f"{self.alarms.n} splits raised an alarm; splits share sessions, so alarms come together, and many of them "
            "mean that a few sessions stand apart from the others"
        )

    def check(self) -> Check:
        """Whether slowed metrics were found where the gate had promised it."""
        promised, broken, tried, found = (
            sum(getattr(one, name) for one in self.detections) for name in ("promised", "broken", "tried", "found")
        )
        blind = [one for one in self.detections if one.promised < one.tried]
        return Check(
            part=PART,
            name=f"{self.source}: one metric slowed by its tolerance",
            wanted=f"found in the {promised} cases in which the MDE says so",
            got=f"{promised - broken} of {promised}; {found} of all {tried}",
            holds=tried > 0 and not self.broken.exceeds(1.0 - CompareSettings().power),
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
    results = [judge(split.baseline, split.candidate, policy) for split in splits]
    pairs = list(zip(splits, results, strict=True))[:SLOWED_SPLITS]
    tries = [_slow_each(split, result, policy) for split, result in pairs]
    return Rescaled(
        source=source,
        sessions=len(sessions),
        left_out=left_out,
        alarms=Count.of(sum(raises_alarm(result) for result in results), len(results)),
        broken=Count.of(sum(any(one.broken for one in split) for split in tries), len(tries)),
        detections=tuple(_detections(one for split in tries for one in split)),
    )


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


@dataclass(frozen=True, slots=True)
class _Try:
    """A metric slowed in one split: its row in the unchanged split, and whether it was found."""

    row: Finding
    found: bool

    @property
    def promised(self) -> bool:
        """Whether the gate said that it would find a worsening of the tolerance."""
        return self.row.mde is not None and self.row.tolerance is not None and self.row.mde <= self.row.tolerance

    @property
    def broken(self) -> bool:
        """Whether it did not, all the same."""
        return self.promised and not self.found


def _slow_each(split: Split, result: GateResult, policy: Policy) -> list[_Try]:
    """Every gated comparison of a split slowed in turn."""
    rows = [row for row in result.findings if row.gated and row.ratio is not None and row.tolerance is not None]
    return [_Try(row, _finds(split, row, policy)) for row in rows]


def _detections(tries: Iterable[_Try]) -> Iterator[Detection]:
    groups: dict[tuple[str, str], list[_Try]] = {}
    for one in tries:
        groups.setdefault((one.row.workload, one.row.metric), []).append(one)
    for (workload, metric), group in groups.items():
        yield Detection(
            workload=workload,
            metric=metric,
            phase=group[0].row.phase,
            tolerance=max(one.row.tolerance or 0.0 for one in group),
            mde=float(np.median([math.inf if one.row.mde is None else one.row.mde for one in group])),
            tried=len(group),
            found=sum(one.found for one in group),
            promised=sum(one.promised for one in group),
            broken=sum(one.broken for one in group),
        )


def _finds(split: Split, row: Finding, policy: Policy) -> bool:
    """Whether the row turns red, with its own phase, once its metric is slowed by its tolerance.

    Where the policy lets more than half the tolerance pass, it is found where it is proven.
    """
    assert row.tolerance is not None
    candidate = [_slowed(session, row, 1.0 + row.tolerance, policy) for session in split.candidate]
    result = judge(split.baseline, candidate, policy)
    proven = [one for one in result.findings if one.proven_slower and _lets_pass(one)]
    return any(
        (one.workload, one.metric, one.phase) == (row.workload, row.metric, row.phase)
        for one in [*regressions(result), *proven]
    )


def _lets_pass(row: Finding) -> bool:
    """Whether a slowdown of half the tolerance passes although it is proven."""
    return row.fails_from is not None and abs(row.fails_from) > HALF * (row.tolerance or 0.0)


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
