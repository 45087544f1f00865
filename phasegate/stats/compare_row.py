"""From the evidence of the comparisons to their rows: which rejections stand, the word, what would decide, the reason.

A comparison regresses where its p survives the correction for the whole build and the worsening is of the size from
which it fails: half the tolerance where nothing else is said, and no less than the absolute floor. It improves by the
mirror image. Otherwise it is within its tolerance only if a worsening of the tolerance would have been found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from phasegate.stats.compare_evidence import Evidence, detectable
from phasegate.stats.compare_levels import Seen, weigh_levels
from phasegate.stats.compare_noise import DEVIATION_FLOOR, Noise, error_df
from phasegate.stats.compare_types import ComparedRow, CompareSettings, Decision, StoredComparison, TwoLevels
from phasegate.stats.compare_words import change, needed, percent, signed
from phasegate.stats.kinds import NEW_LEVEL
from phasegate.stats.levels_words import (
    between_levels,
    levels_of_baseline,
    levels_of_candidate,
    little_against_the_worse,
    of_two_kinds,
    remedy_of_levels,
    too_coarse,
)
from phasegate.stats.multiplicity import Correction, Tested
from phasegate.stats.sentinel import host_shift
from phasegate.stats.sequential import FUTILE, sequence_detectable

MOST_SEARCHED = 200
"""More sessions than this are never asked for."""

RECOMMENDED_BASELINE = 8
"""Baseline sessions asked for where there is none to tell the variance from."""

FEW_SESSIONS = 4
"""Below this number of candidate sessions, one that stands far off is a third of the evidence: it is not waved off."""


ONE_EACH = "compare both servers side by side in one sitting, or measure more sessions of both"
"""What to do where one session stands against one."""


class _HasGroup(Protocol):
    """Anything that belongs to a group of comparisons."""

    @property
    def group(self) -> str: ...


Grouped = TypeVar("Grouped", bound=_HasGroup)
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Weighed:
    """A comparison with its evidence; None where a side has no session."""

    comparison: StoredComparison
    noise: Noise
    evidence: Evidence | None
    leverage: float = 0.0
    host_moved: float | None = None
    paired: bool = False
    step: float = 0.0

    @property
    def counts(self) -> tuple[int, int]:
        """Baseline and candidate sessions; blocks, both, when paired."""
        return len(self.comparison.baseline), len(self.comparison.candidate)

    @property
    def unit(self) -> str:
        """What carries the evidence, for sentences."""
        return "block" if self.paired else "candidate session"


def least_change(one: StoredComparison) -> float:
    """The least log ratio that a worsening of the detectable size has to measure.

    What fails is a matter of policy, what would have been proven is one of the sessions: a limit above half the
    tolerance lets proven worsenings pass, and asks for no more sessions.
    """
    return math.log1p(min(_fail_from(one), one.tolerance / 2.0))


def fails_from(one: StoredComparison) -> float:
    """From which worsening, a fraction, a proven one regresses: no less than the absolute floor."""
    return max(_fail_from(one), one.floor / math.exp(float(np.mean(np.log(one.baseline)))))


def weigh_one(one: StoredComparison, seen: Seen, step: float = 0.0) -> Weighed:
    """Weigh one comparison whose noise is known; ``step`` is the resolution of its values."""
    moved = host_shift(
        np.log(np.asarray(one.baseline_sentinel, dtype=np.float64)),
        np.log(np.asarray(one.candidate_sentinel, dtype=np.float64)),
        math.log1p(_fail_from(one)),
    )
    if seen.baseline.size == 0 or seen.candidate.size == 0:
        return Weighed(one, seen.noise, None, host_moved=moved)
    return Weighed(one, seen.all_noise, weigh_levels(seen), seen.leverage, moved, step=step)


def in_groups(comparisons: Sequence[Grouped], work: Callable[[list[Grouped]], Sequence[Done]]) -> list[Done]:
    """What is worked out for each comparison together with the others of its group, in the order given.

    Args:
        comparisons: stored or paired ones.
        work: the outcomes for all comparisons of one group, in their order.
    """
    groups: dict[str, list[int]] = {}
    for index, one in enumerate(comparisons):
        groups.setdefault(one.group, []).append(index)
    done: dict[int, Done] = {}
    for members in groups.values():
        done.update(zip(members, work([comparisons[index] for index in members]), strict=True))
    return [done[index] for index in range(len(comparisons))]


def judged_rows(weighed: Sequence[Weighed], settings: CompareSettings) -> tuple[ComparedRow, ...]:
    """The rows of a build, in the order given."""
    rows: dict[int, ComparedRow] = {}
    for gated in (True, False):
        members = [index for index, one in enumerate(weighed) if one.comparison.gated is gated]
        some = [weighed[index] for index in members]
        corrected = Correction(settings.alpha, [one.comparison.weight for one in some] if gated else None)
        worse, better = (corrected.tested(_p_values(some, name, settings)) for name in ("p_worse", "p_better"))
        levels = corrected.levels(len(some))
        for index, level, tested_worse, tested_better in zip(members, levels, worse, better, strict=True):
            rows[index] = _Judge(weighed[index], settings, level).row(tested_worse, tested_better)
    return tuple(rows[index] for index in range(len(weighed)))


def _p_values(some: Sequence[Weighed], name: str, settings: CompareSettings) -> list[float]:
    """Their p, or 1 where nothing may be concluded: it then takes part in the correction without ever falling."""
    return [
        1.0
        if one.evidence is None or len(one.comparison.candidate) < settings.least_candidate
        else float(getattr(one.evidence, name))
        for one in some
    ]


def _fail_from(one: StoredComparison) -> float:
    """From which worsening, a fraction, a proven one regresses; the absolute floor comes on top."""
    return one.tolerance / 2.0 if one.fail_from is None else one.fail_from


@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges one comparison; ``level`` is that which it can count on, whatever the others say."""

    weighed: Weighed
    settings: CompareSettings
    level: float

    def row(self, worse: Tested, better: Tested) -> ComparedRow:
        evidence = self.weighed.evidence
        k, m = self.weighed.counts
        if evidence is None:
            return self._empty(k, m)
        if k < 2 and m < 2 and not self.weighed.paired:
            return self._one_each(evidence)
        mde = self._mde(evidence)
        decision, reason = self._decide(evidence, mde, worse, better)
        base = self._plain(evidence)
        row = replace(
            base, decision=decision, p=evidence.p_worse, p_improved=evidence.p_better, p_allowed=worse.allowed, mde=mde,
            df=error_df(k, m, self.weighed.noise, self.weighed.leverage), deviation=self.weighed.noise.deviation,
            warnings=self._warnings(evidence),
        )  # fmt: skip
        open_end = decision is Decision.UNDECIDED and self.weighed.host_moved is None
        sessions, more_baseline = self._needs(evidence, mde) if open_end else (None, None)
        remedy = self._asked(evidence, sessions, more_baseline) if decision is Decision.UNDECIDED else ""
        return replace(
            row, sessions_needed=sessions, baseline_needed=more_baseline, remedy=remedy,
            reason="; ".join(filter(None, [self._change(base), reason, remedy])),
        )  # fmt: skip

    def _change(self, row: ComparedRow) -> str:
        one = self.weighed.comparison
        # What only informs fails nothing, from no size on.
        least = math.exp(math.log1p(self._fails_from) * (-1 if one.higher_is_better else 1)) if one.gated else None
        return change(_known(row.ratio), row.low, row.high, self.settings.confidence, least)

    def _asked(self, evidence: Evidence, sessions: int | None, more_baseline: int | None) -> str:
        if self.weighed.host_moved is not None:
            return "measure again on a quiet host, or compare both servers in one sitting"
        if self._levels_decide(evidence):
            return remedy_of_levels(evidence)
        if self._too_coarse(evidence):
            return "write the values with more digits"
        if not self.weighed.paired and self.weighed.counts[0] < 2:
            return (
                f"record {more_baseline} more baseline sessions with the old server, or compare both servers side by "
                "side in one sitting"
            )
        return needed(sessions, more_baseline, paired=self.weighed.paired)

    def _plain(self, evidence: Evidence) -> ComparedRow:
        """The row with its effect only."""
        one = self.weighed.comparison
        low, high = evidence.low, evidence.high
        if evidence.disagree:
            # The noise of the baseline says nothing of sessions that contradict each other.
            low, high = min(low, evidence.least), max(high, evidence.most)
        ends = [math.exp(-x if one.higher_is_better else x) for x in _bounded(evidence.d, low, high)]
        low, high = sorted(ends[1:])
        k, m = self.weighed.counts
        return ComparedRow(
            one.name, Decision.UNDECIDED, evidence.d, ends[0], low, high, None, None, None, None, None,
            k, m, None, None, "", fails_from=self._fails_from,
            baseline_levels=self._baseline_levels(evidence), candidate_levels=levels_of_candidate(one, evidence),
            step=self.weighed.step if self._too_coarse(evidence) else 0.0,
        )  # fmt: skip

    def _empty(self, k: int, m: int) -> ComparedRow:
        side = "baseline" if k == 0 else "candidate"
        return ComparedRow(
            self.weighed.comparison.name, Decision.UNDECIDED, None, None, None, None, None, None, None, None, None,
            k, m, max(0, self.settings.least_candidate - m) or None, RECOMMENDED_BASELINE if k == 0 else None,
            f"the {side} has no session, so there is nothing to compare",
        )  # fmt: skip

    def _one_each(self, evidence: Evidence) -> ComparedRow:
        base = replace(self._plain(evidence), low=None, high=None)
        return replace(
            base, sessions_needed=self.settings.least_candidate - 1, baseline_needed=RECOMMENDED_BASELINE - 1,
            remedy=ONE_EACH, reason=f"{signed(_known(base.ratio))}; one session on each side cannot tell a change from "
            f"noise: {ONE_EACH}",
        )  # fmt: skip

    def _mde(self, evidence: Evidence) -> float:
        k, m = self.weighed.counts
        planned = self.settings.planned_candidate
        noise, power, leverage = self.weighed.noise, self.settings.power, self.weighed.leverage
        if self._between_levels(evidence):
            return self._detectable(k, m, evidence.gap + evidence.rounding)
        k = k if self.weighed.paired else evidence.best_count
        if planned is not None and planned > m and evidence.p_best >= FUTILE:
            beyond = evidence.rounding
            return sequence_detectable(k, m, planned, noise, self.level, power, leverage, self._material, beyond)
        return self._detectable(k, m, evidence.rounding)

    def _decide(self, evidence: Evidence, mde: float, worse: Tested, better: Tested) -> tuple[Decision, str]:
        one, (k, m) = self.weighed.comparison, self.weighed.counts
        if self.weighed.host_moved is not None:
            moved = signed(math.exp(self.weighed.host_moved))
            return Decision.UNDECIDED, f"the frozen reference itself moved by {moved}, so the host changed"
        if m < self.settings.least_candidate:
            several = "" if m == 1 else "s"
            return Decision.UNDECIDED, f"{m} {self.weighed.unit}{several} cannot decide, since one may be a bad one"
        open_end = worse.falls or better.falls or mde > one.tolerance
        if evidence.disagree and open_end and not self._all_large(evidence, evidence.d > 0.0):
            return Decision.UNDECIDED, f"its {self.weighed.unit}s contradict each other, {self._from_to(evidence)}"
        noise = f"p = {evidence.p_worse:.2g} of {worse.allowed:.2g} allowed"
        if worse.falls and self._large(evidence.d_worse):
            return Decision.REGRESSED, f"worse than noise explains ({noise}){self._assumption()}"
        if better.falls and self._large(evidence.d_better):
            return Decision.IMPROVED, f"better than noise explains (p = {evidence.p_better:.2g}){self._assumption()}"
        if worse.falls and self._large(evidence.d):
            return Decision.UNDECIDED, little_against_the_worse(evidence, self._baseline_levels(evidence))
        if k < 2:  # blocks of fewer than two have ended above
            return Decision.UNDECIDED, f"a baseline of one session shows no variance{self._assumption()}"
        if self._between_levels(evidence):
            return Decision.UNDECIDED, between_levels(evidence, self._baseline_levels(evidence))
        if self._far_off_decides(evidence):
            return Decision.UNDECIDED, f"it rests on single ones of {m} {self.weighed.unit}s, which stand far off"
        return self._not_found(evidence, mde, f"worse than noise explains ({noise})" if worse.falls else "")

    def _not_found(self, evidence: Evidence, mde: float, proven: str) -> tuple[Decision, str]:
        """The word where no change that counts was found: whether one of the tolerance would have been."""
        one = self.weighed.comparison
        tolerance = f"the tolerance of {percent(one.tolerance)}"
        small = f"{proven}, but too little to fail; " if proven and one.gated else ""
        if mde <= one.tolerance:
            return Decision.WITHIN, f"{small}a worsening of {percent(mde)} would have been found, within {tolerance}"
        if self._too_coarse(evidence):
            return Decision.UNDECIDED, too_coarse(evidence, mde, tolerance)
        kinds = of_two_kinds(self._baseline_levels(evidence), levels_of_candidate(one, evidence))
        return (
            Decision.UNDECIDED,
            f"{kinds}{small}only a worsening of {percent(mde)} would have been found, above {tolerance}",
        )

    @property
    def _material(self) -> float:
        return least_change(self.weighed.comparison)

    def _between_levels(self, evidence: Evidence) -> bool:
        """Whether the candidate is worse than the baseline's better level, or than most of it, and yet not proven to be
        worse: it may only have met the other kind of session, or an older level."""
        return evidence.p_best <= self.level < evidence.p_worse and self._large(evidence.d_best)

    def _levels_decide(self, evidence: Evidence) -> bool:
        """Whether an undecided comparison is so for the levels of its sessions: more sessions would not decide it."""
        named = self._baseline_levels(evidence), levels_of_candidate(self.weighed.comparison, evidence)
        return self._between_levels(evidence) or named != (None, None)

    def _baseline_levels(self, evidence: Evidence) -> TwoLevels | None:
        """The baseline's levels where the candidate is held to them; a single bad newest session is none of its own."""
        single = evidence.best_count == len(self.weighed.comparison.baseline)
        if single and not self._between_levels(evidence):
            return None
        return levels_of_baseline(self.weighed.comparison, evidence)

    def _too_coarse(self, evidence: Evidence) -> bool:
        """Whether rounding alone may make up what would count as a change."""
        return evidence.rounding >= self._material

    @property
    def _fails_from(self) -> float:
        """From which worsening, a fraction, a proven one regresses: no less than the absolute floor."""
        return fails_from(self.weighed.comparison)

    def _large(self, worse_by: float) -> bool:
        """Whether a change is of the size from which it counts."""
        return worse_by >= math.log1p(self._fails_from)

    def _all_large(self, evidence: Evidence, worse: bool) -> bool:
        """Whether every candidate session by itself lies beyond the whole tolerance, in the verdict's direction."""
        by = evidence.least if worse else -evidence.most
        return by >= math.log1p(self.weighed.comparison.tolerance) and self._large(by)

    def _from_to(self, evidence: Evidence) -> str:
        """``+2.8 % and +18.6 %``: the sessions that lie farthest apart."""
        flip = self.weighed.comparison.higher_is_better
        ends = sorted(math.exp(-x if flip else x) for x in _bounded(evidence.least, evidence.most))
        return f"{signed(ends[0])} and {signed(ends[1])}"

    def _far_off_decides(self, evidence: Evidence) -> bool:
        """Whether a material worsening would stand but for the care taken with few sessions that lie far off."""
        m = len(self.weighed.comparison.candidate)
        hidden = evidence.p_worse_all <= self.level < evidence.p_worse
        return hidden and m < FEW_SESSIONS and self._large(evidence.d_all)

    def _assumption(self) -> str:
        noise = self.weighed.noise
        if not noise.assumed:
            return ""
        return f", assuming that sessions vary by {percent(noise.deviation)}, which nobody measured"

    def _warnings(self, evidence: Evidence) -> tuple[str, ...]:
        found = []
        kinds = levels_of_candidate(self.weighed.comparison, evidence) is not None
        if evidence.far and self._far_matters() and not kinds:
            m = len(self.weighed.comparison.candidate)
            found.append(f"{evidence.far} of {m} {self.weighed.unit}s stand far off and were pulled in; look at them")
        if self.weighed.noise.restless and not kinds:
            times = f"{math.sqrt(self.weighed.noise.unrest):.1f} times as much as the baseline's"
            found.append(f"the candidate's sessions vary {times}; look for what makes it unsteady")
        if self.weighed.noise.deviation <= DEVIATION_FLOOR and not self._too_coarse(evidence):
            floor = percent(DEVIATION_FLOOR)
            found.append(f"the measured values are all but equal; a noise of {floor} is assumed")
        return tuple(found)

    def _far_matters(self) -> bool:
        """Whether some candidate session lies off the others by as much as would count as a change."""
        logs = np.log(np.asarray(self.weighed.comparison.candidate, dtype=np.float64))
        return bool(np.max(np.abs(logs - np.median(logs))) >= math.log1p(_fail_from(self.weighed.comparison)))

    def _needs(self, evidence: Evidence, mde: float) -> tuple[int | None, int | None]:
        """(candidate sessions, baseline sessions) that would decide; see `ComparedRow`."""
        k, m = self.weighed.counts
        tolerance, least = self.weighed.comparison.tolerance, self.settings.least_candidate
        if k < 2 and not self.weighed.paired:
            return None, RECOMMENDED_BASELINE - k
        if self._levels_decide(evidence):
            newest = 0 if evidence.levels is None else evidence.levels.newest
            return None, NEW_LEVEL - newest if newest else None
        beyond, best = evidence.rounding, k if self.weighed.paired else evidence.best_count
        fewest = max(1, least - m)
        if mde <= tolerance:
            return fewest, None
        more = _fewest(fewest, lambda count: self._detectable(best, m + count, beyond) <= tolerance)
        if more is not None or self.weighed.paired:
            return more, None
        return None, self._baseline_needed(k, max(m, 5), beyond)

    def _detectable(self, k: int, m: int, beyond: float) -> float:
        """Detectable worsening with so many sessions; more blocks bring degrees of freedom with them."""
        noise, one = self.weighed.noise, self.weighed
        if one.paired:
            noise, k = replace(noise, df=noise.df + m - one.counts[1]), 0
        return detectable(k, m, noise, self.level, self.settings.power, one.leverage, self._material, beyond)

    def _baseline_needed(self, k: int, m: int, beyond: float) -> int | None:
        """Baseline sessions that bring the detectable worsening within the tolerance; their df come with them."""
        noise = self.weighed.noise

        def enough(more: int) -> bool:
            longer = replace(noise, df=noise.df + more)
            mde = detectable(
                k + more, m, longer, self.level, self.settings.power, material=self._material, beyond=beyond
            )
            return mde <= self.weighed.comparison.tolerance

        return _fewest(1, enough)


def _fewest(least: int, enough: Callable[[int], bool]) -> int | None:
    """The fewest sessions from ``least`` on that are enough, as every larger number then is; None beyond any use."""
    if not enough(MOST_SEARCHED):
        return None
    low, high = least, MOST_SEARCHED
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _known(ratio: float | None) -> float:
    assert ratio is not None
    return ratio


def _bounded(*logs: float) -> list[float]:
    """Logs that can be exponentiated."""
    return [min(700.0, max(-700.0, one)) for one in logs]
