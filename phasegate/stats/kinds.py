"""Sessions at two levels: those of two kinds, in turn, and those since the level changed.

Servers start in kinds: another runner, another placement of memory, another clock. Where both kinds have been seen, a
candidate between them proves nothing, however many of its sessions agree. A level that changed with the newest one or
two sessions looks alike, but its order tells it apart; from three sessions on the gate believes it
(`phasegate.gate.window`) and leaves the older ones out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.power import critical_t
from phasegate.stats.winsor import far_limit, median_of, robust_scale

Logs = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_OF_A_KIND = 2
"""Sessions that a kind needs: a single one may be a bad session."""

LEAST_SESSIONS = 4
"""Fewer sessions show no kinds."""

MOST_STEPS_OF_ONE_LEVEL = 1.5
"""Steps of the values within which levels are none: one value may be rounded down and the next one up."""

COMPACT = 3.0
"""How many times the deviation of the larger group that of the smaller one may be, if both are kinds of session."""

STRAYS = 4
"""One in so many sessions of a kind may stand on the other side, where another comparison shows which are of it."""

SAME_KINDS = 0.001
"""p below which a split that another comparison of the same sessions shows is believed."""

NEW_LEVEL = 3
"""Sessions from which on a new level is believed by itself; with fewer it is a step that is named."""


def clustered(n: int) -> float:
    """Sum of squares between two groups, in that within them, beyond which n values are no longer one group.

    The groups are those that make it largest, of two values at least. One in twenty series of n normal values lies
    beyond (simulated; the limit for many values is Engelman and Hartigan's, 1969). That is enough, since the groups
    must also lie as far apart as would count as a change.
    """
    return 1.75 + 37.0 / (n - 2)


@dataclass(frozen=True, slots=True)
class Levels:
    """Two levels of some sessions.

    Attributes:
        upper: for each session, in time order, whether it stands at the upper level of the logs (the worse).
        newest: how many of the newest sessions make up one of the levels by themselves; 0 where the kinds mix.
    """

    upper: Mask
    newest: int = 0

    def parts(self, logs: Logs) -> tuple[Logs, Logs]:
        """The sessions of the lower and of the upper level."""
        return logs[~self.upper], logs[self.upper]

    def gap(self, logs: Logs) -> float:
        """Distance of the levels, a log."""
        lower, upper = self.parts(logs)
        return float(upper.mean() - lower.mean())


def levelled(logs: Logs, upper: Mask | None) -> Logs:
    """Sessions with the distance of their two levels taken out, around their common mean; as they are where of one."""
    if upper is None:
        return logs
    level = np.where(upper, float(logs[upper].mean()), float(logs[~upper].mean()))
    return np.asarray(logs - level + float(logs.mean()), dtype=np.float64)


def within_kinds(logs: Logs, upper: Mask | None) -> Logs:
    """The same, spread so that their sample variance is that within the kinds, which has one degree of freedom less."""
    if upper is None:
        return logs
    calm = levelled(logs, upper)
    return np.asarray(calm.mean() + (calm - calm.mean()) * math.sqrt((logs.size - 1) / (logs.size - 2)))


def levels_of(series: Sequence[Logs], aparts: Sequence[float], scales: Sequence[float]) -> list[Levels | None]:
    """The two levels of each series of sessions in time order, or None where they are of one.

    A session is of its kind in all that it measures. So kinds that one series shows clearly are looked for in the
    others of as many sessions too, where noise may half hide them.

    Args:
        series: logs of several comparisons.
        aparts: how far levels lie apart at least, a log: less would not count as a change.
        scales: least deviation within a level that is believed.
    """
    found = [_levels(*one) for one in zip(series, aparts, scales, strict=True)]
    seen = Counter(one.upper.tobytes() for one in found if one is not None and not one.newest)
    for mask, _ in seen.most_common():
        upper = np.frombuffer(mask, dtype=np.bool_)
        for index, logs in enumerate(series):
            levels = found[index]
            # A newest session that stands alone may only be a bad one of its kind.
            if (levels is None or levels.newest == 1) and _splits(logs, upper, aparts[index], scales[index]):
                found[index] = Levels(upper)
    return found


def _levels(logs: Logs, apart: float, scale: float) -> Levels | None:
    upper = _two_kinds(logs, apart, scale)
    if upper is None:
        return _but_for_one(logs, apart, scale) or _newest_step(logs, apart, scale)
    since = [newest for newest in range(1, NEW_LEVEL) if _alone(upper, newest)]
    return Levels(upper, since[0] if since else 0)


def _but_for_one(logs: Logs, apart: float, scale: float) -> Levels | None:
    """Two kinds beside a single bad session, which would hide them; it counts with those on its side."""
    far = int(np.argmax(np.abs(logs - median_of(logs)))) if logs.size else 0
    upper = _two_kinds(np.delete(logs, far), apart, scale) if logs.size > LEAST_SESSIONS else None
    return None if upper is None else Levels(np.insert(upper, far, logs[far] > median_of(logs)))


def _alone(upper: Mask, newest: int) -> bool:
    """Whether the newest sessions make up one of the groups by themselves."""
    is_new = np.arange(upper.size) >= upper.size - newest
    return np.array_equal(upper, is_new) or np.array_equal(upper, ~is_new)


def _splits(logs: Logs, upper: Mask, apart: float, scale: float) -> bool:
    """Whether a split that is known from elsewhere parts these sessions too, the same way round."""
    if upper.size != logs.size:
        return False
    low, high = logs[~upper], logs[upper]
    within = float(((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()) / (logs.size - 2)
    error = max(math.sqrt(within), scale) * math.sqrt(1.0 / low.size + 1.0 / high.size)
    distance = float(high.mean() - low.mean())
    middle = (median_of(high) + median_of(low)) / 2.0
    right = [part.size - int(np.count_nonzero(part)) <= part.size // STRAYS for part in (low < middle, high > middle)]
    parted = all(right) and _alike(low, high, scale)
    return parted and distance >= apart and distance > critical_t(SAME_KINDS, logs.size - 2.0) * error


def _newest_step(logs: Logs, apart: float, scale: float) -> Levels | None:
    for newest in range(NEW_LEVEL - 1, 0, -1):
        before, since = logs[:-newest], logs[-newest:]
        if before.size < LEAST_SESSIONS:
            continue
        distance = float(since.mean()) - median_of(before)
        gap = float(since.min() - before.max() if distance > 0.0 else before.min() - since.max())
        limit = max(apart, far_limit(before.size) * max(robust_scale(before), scale))
        # Without a gap the new sessions are only the last of many far ones.
        if abs(distance) >= limit and gap > abs(distance) / 2.0:
            is_new = np.arange(logs.size) >= before.size
            return Levels(is_new if distance > 0.0 else ~is_new, newest)
    return None


def _two_kinds(logs: Logs, apart: float, scale: float) -> Mask | None:
    """Which sessions are of the upper of two kinds; None where they are of one."""
    n = logs.size
    if n < LEAST_SESSIONS:
        return None
    ordered = np.sort(logs)
    cut, between = _widest_cut(ordered)
    within = max(float(((ordered - ordered.mean()) ** 2).sum()) - between, (n - 2) * scale**2)
    gap = float(ordered[cut] - ordered[cut - 1])
    distance = float(ordered[cut:].mean() - ordered[:cut].mean())
    if not _alike(ordered[:cut], ordered[cut:], scale):
        return None
    # A drift or an even spread has groups too, but no gap between them.
    if between <= clustered(n) * within or gap**2 * (n - 2) <= within or distance < apart:
        return None
    return np.asarray(logs >= ordered[cut])


def _alike(low: Logs, high: Logs, scale: float) -> bool:
    """Whether the smaller group is about as compact as the larger one: bad sessions are bad in different measure.

    Of three or more one may be bad.
    """
    few, many = sorted((low, high), key=len)
    if few.size > LEAST_OF_A_KIND:
        few = np.delete(few, int(np.argmax(np.abs(few - median_of(few)))))
    return float(few.std(ddof=1)) <= COMPACT * max(float(many.std(ddof=1)), scale)


def _widest_cut(ordered: Logs) -> tuple[int, float]:
    """Where two groups of ordered values differ most, and their sum of squares between them."""
    n = ordered.size
    cuts = np.arange(LEAST_OF_A_KIND, n - LEAST_OF_A_KIND + 1)
    below = np.cumsum(ordered)[cuts - 1]
    apart = (ordered.sum() - below) / (n - cuts) - below / cuts
    between = cuts * (n - cuts) / n * apart**2
    best = int(np.argmax(between))
    return int(cuts[best]), float(between[best])


def splits_by_gap(sessions: Sequence[Logs], explained: Sequence[float], errors: Sequence[float]) -> list[Mask | None]:
    """Which of a few sessions lie above the widest gap between neighbours, None where they are not of two kinds.

    What one comparison shows is looked for in the others of as many sessions, as in `levels_of`.

    Args:
        sessions: logs of several comparisons.
        explained: the widest gap that noise explains, for each.
        errors: the distance of two single sessions that noise explains where it is known which two, for each.
    """
    found = [_split_by_gap(*one) for one in zip(sessions, explained, strict=True)]
    seen = Counter(one.tobytes() for one in found if one is not None)
    for mask, _ in seen.most_common():
        upper = np.frombuffer(mask, dtype=np.bool_)
        for index, logs in enumerate(sessions):
            if found[index] is not None or logs.size != upper.size:
                continue
            distance = float(logs[upper].mean() - logs[~upper].mean())
            if distance > errors[index] * math.sqrt((1.0 / upper.sum() + 1.0 / (~upper).sum()) / 2.0):
                found[index] = upper
    return found


def _split_by_gap(logs: Logs, noise_explains: float) -> Mask | None:
    """The split of one comparison.

    Two sessions contradict each other and are of no kinds. A handful shows no deviation of its own, so the gap must be
    wider than the baseline's noise explains, and each kind no wider than that, or than half the gap: sessions that
    merely scatter are of no kind.
    """
    if logs.size <= LEAST_OF_A_KIND:
        return None
    ordered = np.sort(logs)
    gaps = np.diff(ordered)
    at = int(np.argmax(gaps))
    gap, widest = float(gaps[at]), max(float(ordered[at] - ordered[0]), float(ordered[-1] - ordered[at + 1]))
    return logs > ordered[at] if gap > noise_explains and widest <= max(noise_explains, gap / 2.0) else None
