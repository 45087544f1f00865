"""The evidence of a comparison whose sessions may stand at two levels.

Worse is proven where even the candidate's better sessions are worse than the baseline's worse level, or where both
kinds are seen on both sides and each got worse. Better is the mirror image. Between the levels nothing is proven: the
candidate may only have met the other kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.compare_evidence import Evidence, apart_beyond_noise, weigh
from phasegate.stats.compare_noise import NOTHING_SHOWN, Noise, Shown, error_df, spread_factor, with_unrest
from phasegate.stats.kinds import LEAST_OF_A_KIND, Levels, splits_by_gap
from phasegate.stats.power import critical_t
from phasegate.stats.ranks import rank_p
from phasegate.stats.winsor import LIMIT_OF_FEW, median_of, robust_scale

Logs = NDArray[np.float64]

OFF = 3.5
"""Deviations from the median beyond which a baseline session stands off the others."""

UNLIKE_ALPHA = 0.001
"""p below which the candidate is not like a single baseline session that stands far off. Being wrong here turns an
unchanged build red whose baseline got slower with its newest session."""

IN_ROWS = 30.0
"""How much weaker the odds of meeting a kind are than those of independent sessions: a kind comes in rows, since
neighbouring sessions share a runner or a placement."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one comparison is weighed by. Logs, positive for worse.

    Attributes:
        baseline, candidate: one per session, in time order.
        noise: of baseline sessions, within their level; the candidate's unrest comes on top.
        levels: those of the baseline, or None.
        split: which candidate sessions are of the worse of two kinds; None for one kind.
        shown: what the candidates of the metric show of their noise, within their kinds.
        rounding: what rounding may make up of a worsening and of an improvement.
        leverage, confidence: as of `weigh`.
        material: the least log ratio that counts as a change, whatever its p.
        mirrored: whether better and worse are exchanged.
    """

    baseline: Logs
    candidate: Logs
    noise: Noise
    levels: Levels | None = None
    split: NDArray[np.bool_] | None = None
    shown: Shown = NOTHING_SHOWN
    rounding: tuple[float, float] = (0.0, 0.0)
    leverage: float = 0.0
    confidence: float = 0.95
    material: float = 0.0
    mirrored: bool = False

    @property
    def all_noise(self) -> Noise:
        """The noise with the unrest of all candidate sessions."""
        return with_unrest(self.noise, self.candidate, self.shown)

    def turned(self) -> Seen:
        """The same with better and worse exchanged."""
        return replace(
            self, baseline=-self.baseline, candidate=-self.candidate, rounding=self.rounding[::-1],
            levels=None if self.levels is None else replace(self.levels, upper=~self.levels.upper),
            split=None if self.split is None else ~self.split, mirrored=not self.mirrored,
        )  # fmt: skip

    def against(self, baseline: Logs) -> Evidence:
        """The whole candidate against some of the baseline's sessions."""
        return self.part_against(baseline, self.candidate)

    def part_against(self, baseline: Logs, candidate: Logs) -> Evidence:
        """Candidate sessions of one kind against some of the baseline's sessions."""
        return weigh(
            baseline, candidate, with_unrest(self.noise, candidate, self.shown),
            leverage=self.leverage, confidence=self.confidence, rounding=self.rounding,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Proof:
    """A one-sided p, and the least difference that stands behind it."""

    p: float
    d: float

    @classmethod
    def of(cls, evidence: Evidence) -> _Proof:
        return cls(evidence.p_worse, evidence.d)


def splits_of(candidates: Sequence[Logs], noises: Sequence[Noise]) -> list[NDArray[np.bool_] | None]:
    """Which candidate sessions are of the worse of two kinds, for the comparisons of one metric."""
    apart = [apart_beyond_noise(noise) for noise in noises]
    # No wider than what makes a session a far one, or it would be pulled in to the others before it is seen.
    explained = [min(one, LIMIT_OF_FEW * noise.deviation) for one, noise in zip(apart, noises, strict=True)]
    return splits_by_gap(candidates, explained, apart)


def weigh_levels(seen: Seen) -> Evidence:
    """The evidence of a comparison, with the levels of both sides respected."""
    plain = seen.against(seen.baseline)
    worse, better = _proof(seen, _Proof.of(plain)), _proof(seen.turned(), _Proof(plain.p_better, -plain.d))
    found = replace(
        plain, p_worse=worse.p, d_worse=worse.d, p_better=better.p, d_better=better.d,
        levels=seen.levels, split=seen.split, rounding=seen.rounding[0],
    )  # fmt: skip
    if seen.levels is None:
        return found
    lower, upper = seen.levels.parts(seen.baseline)
    ends = seen.against(lower), seen.against(upper)
    low, high = min(one.low for one in ends), max(one.high for one in ends)
    if upper.size < LEAST_OF_A_KIND:  # a single bad session makes no level that a candidate is held to
        return replace(found, low=low, high=high)
    return replace(
        found, low=low, high=high, p_best=ends[0].p_worse, d_best=ends[0].d, best_count=lower.size,
        gap=seen.levels.gap(seen.baseline),
    )  # fmt: skip


def _proof(seen: Seen, plain: _Proof) -> _Proof:
    """How sure it is that the candidate is worse, whatever kinds its sessions and the baseline's are of."""
    lower, upper = (seen.baseline, seen.baseline) if seen.levels is None else seen.levels.parts(seen.baseline)
    # A single session may be slow by accident, but hardly fast.
    one_level = seen.levels is None or (upper.size < LEAST_OF_A_KIND and not seen.mirrored)
    upper = lower if one_level else upper
    whole = plain if seen.levels is None else _Proof.of(seen.against(upper))
    split = seen.split
    if split is not None and np.count_nonzero(split) >= LEAST_OF_A_KIND:
        return _of_kinds(seen, (plain, whole), (lower, upper), split)
    if not one_level and seen.levels is not None and not seen.levels.newest:
        middle = (float(lower.mean()) + float(upper.mean())) / 2.0
        before = int(np.count_nonzero(seen.baseline > middle))
        oftener = _Proof(min(1.0, IN_ROWS * _more_often(seen, before, middle)), plain.d)
        return _surest(seen, [whole, oftener, _by_order(seen, plain, upper)])
    found = whole
    alike = _like_the_candidate(seen) if one_level else None
    if alike is not None and alike.any():
        # A newest session may be the first of a new level, and several are of a kind. A single one was met by chance,
        # which has its own odds.
        single = seen.levels is None and np.count_nonzero(alike) < LEAST_OF_A_KIND
        middle = (median_of(seen.baseline) + median_of(seen.candidate)) / 2.0
        chance = _more_often(seen, 1, middle) if single else 1.0
        found = _Proof(max(found.p, chance), found.d)
    return found


def _of_kinds(seen: Seen, proven: tuple[_Proof, _Proof], levels: tuple[Logs, Logs], split: NDArray[np.bool_]) -> _Proof:
    """The same where the candidate has two kinds of sessions: the surest of what proves enough to count."""
    (plain, whole), (lower, upper) = proven, levels
    better, worse = seen.candidate[~split], seen.candidate[split]
    proofs = [_Proof.of(seen.part_against(upper, better))]
    if seen.levels is None:
        middle = (float(better.max()) + float(worse.min())) / 2.0
        before = int(np.count_nonzero(seen.baseline > middle))
        proofs.append(_Proof(max(whole.p, _more_often(seen, before, middle)), whole.d))
    elif not seen.levels.newest:
        proofs.append(_kind_by_kind(seen, (lower, upper), (better, worse)))
        proofs.append(_by_order(seen, plain, upper))
    return _surest(seen, proofs)


def _by_order(seen: Seen, plain: _Proof, upper: Logs) -> _Proof:
    """By the order of all sessions, where some of the candidate's stand well beyond the baseline's worse kind."""
    worst = np.sort(seen.candidate)[-LEAST_OF_A_KIND:]
    beyond = seen.part_against(upper, worst)
    if worst.size < LEAST_OF_A_KIND or beyond.d < seen.material:
        return _Proof(1.0, plain.d)
    return _Proof(max(beyond.p_worse, rank_p(seen.baseline, seen.candidate)), plain.d)


def _surest(seen: Seen, proofs: Sequence[_Proof]) -> _Proof:
    """Of several proofs the surest of a change that counts; of any change where none does."""
    return min(proofs, key=lambda proof: (proof.d < seen.material, proof.p))


def _kind_by_kind(seen: Seen, before: tuple[Logs, Logs], now: tuple[Logs, Logs]) -> _Proof:
    """Each kind against its own. All parts must hold, and the better kind of now must not be the worse of before."""
    better, worse = seen.part_against(before[0], now[0]), seen.part_against(before[1], now[1])
    not_the_other = seen.part_against(before[1], now[0]).p_better
    return _Proof(max(better.p_worse, worse.p_worse, not_the_other), min(better.d, worse.d))


def _like_the_candidate(seen: Seen) -> NDArray[np.bool_]:
    """Which baseline sessions stand off the others where the candidate does, and nearer to it than to the others."""
    noise, now = seen.all_noise, median_of(seen.candidate)
    m = seen.candidate.size
    error = noise.deviation * spread_factor(1, m, noise, seen.leverage)
    alike = critical_t(UNLIKE_ALPHA / 2.0, error_df(1, m, noise, seen.leverage)) * error
    most = median_of(seen.baseline)
    off = max(OFF * max(robust_scale(seen.baseline), noise.deviation), (now - most) / 2.0)
    return np.asarray((seen.baseline - most > off) & (np.abs(seen.baseline - now) <= alike))


def _more_often(seen: Seen, before: int, limit: float) -> float:
    """p of "sessions as bad as these come more often than before" (Fisher's exact test).

    Args:
        before: how many sessions of the baseline are.
        limit: the log from which candidate sessions are.
    """
    k, m = seen.baseline.size, seen.candidate.size
    now = int(np.count_nonzero(seen.candidate > limit))
    ways = (math.comb(m, one) * math.comb(k, before + now - one) for one in range(now, min(m, before + now) + 1))
    return sum(ways) / math.comb(k + m, before + now)
