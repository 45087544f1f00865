"""A frozen reference, measured in every session, shows what the whole host did; that is subtracted.

The coefficient comes from the baseline sessions alone (a control variate; CUPED, Deng et al. 2013) and is shrunk by the
evidence that there is any relation (positive-part James and Stein), so that a sentinel that has nothing to do with the
metric costs next to nothing. It is kept between 0 and 1: a busy host slows both, and the metric not by more.
A candidate measured where the sentinel stands beyond all it did before is not corrected but not judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.power import upper_tail
from phasegate.stats.winsor import robust_scale, winsorised

Logs = NDArray[np.float64]

LEAST_SESSIONS = 5
"""Fewer baseline sessions cannot show a relation."""

SHIFT_ALPHA = 0.001
"""Chance of calling the host changed where it is not, for one comparison."""

SCALE_FLOOR = 1e-3
"""Least standard deviation of the sentinel's logs."""


@dataclass(frozen=True, slots=True)
class Relation:
    """How a metric follows the sentinel.

    Attributes:
        coefficient: how much of the sentinel's log to subtract; 0 where nothing is.
        uncertainty: how much of a single comparison's noise stands in the coefficient's error: 1 where it was fitted
            to that comparison alone, less where several comparisons averaged their noise away.
    """

    coefficient: float = 0.0
    uncertainty: float = 0.0


NO_RELATION = Relation()


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A comparison's logs with the host's part taken out.

    Attributes:
        baseline, candidate: logs, one per session.
        relation: what was subtracted.
        leverage: what the uncertain coefficient adds to the variance of the difference, in units of one session's
            variance.
    """

    baseline: Logs
    candidate: Logs
    relation: Relation = NO_RELATION
    leverage: float = 0.0


def relations(pairs: Sequence[tuple[Logs, Logs] | None]) -> list[Relation]:
    """How the comparisons of one metric follow the sentinel, from their baseline sessions.

    Args:
        pairs: (metric, sentinel) logs of each comparison, one value per session; None where it has no sentinel.
    """
    together: dict[bytes, list[int]] = {}
    for index, pair in enumerate(pairs):
        if pair is not None and pair[0].size >= LEAST_SESSIONS:
            together.setdefault(pair[1].tobytes(), []).append(index)
    found = [NO_RELATION] * len(pairs)
    for key, members in together.items():
        metrics = [pair[0] for pair in (pairs[index] for index in members) if pair is not None]
        reference = np.frombuffer(key, dtype=np.float64)
        relation = _relation(metrics, reference)
        for index in members:
            found[index] = relation
    return found


def _relation(metrics: Sequence[Logs], reference: Logs) -> Relation:
    """One coefficient for comparisons that were measured in the same sessions.

    What slows one prefill by a tenth slows another by about a tenth; their average shows that best, free of what
    befell single ones. The comparisons share their sessions, so their number adds nothing to the degrees of freedom.
    """
    z, _ = winsorised(reference)
    z = z - z.mean()
    each = [winsorised(metric)[0] for metric in metrics]
    each = [one - one.mean() for one in each]
    average = np.mean(each, axis=0)
    cross, total, own = float(average @ z), float(z @ z), float(average @ average)
    if total <= 0.0 or own <= 0.0 or cross <= 0.0:
        return NO_RELATION
    explained = min(cross * cross / (total * own), 1.0 - 1e-9)
    evidence = explained * (z.size - 2) / (1.0 - explained)
    shrinkage = max(0.0, 1.0 - 1.0 / evidence)
    slope = cross / total
    left = float(np.mean([np.sum((one - slope * z) ** 2) for one in each]))
    left_of_average = float(np.sum((average - slope * z) ** 2))
    uncertainty = min(1.0, left_of_average / left) if left > 0.0 else 1.0
    return Relation(min(1.0, slope) * shrinkage, shrinkage**2 * uncertainty)


def adjust(
    baseline: Logs, candidate: Logs, baseline_sentinel: Logs, candidate_sentinel: Logs, relation: Relation
) -> Adjusted:
    """Subtract the sentinel from both sides; all logs, one per session.

    Single sessions in which the sentinel stands far off are pulled in: whatever befell it there need not have
    befallen the metric.
    """
    before, _ = winsorised(baseline_sentinel)
    now, _ = winsorised(candidate_sentinel, robust_scale(baseline_sentinel))
    centre = float(before.mean())
    spread = float(((before - centre) ** 2).sum())
    moved = float(now.mean()) - centre
    return Adjusted(
        baseline - relation.coefficient * (before - centre),
        candidate - relation.coefficient * (now - centre),
        relation,
        relation.uncertainty * moved * moved / spread if spread > 0.0 else 0.0,
    )


def host_shift(reference: Logs, candidate_reference: Logs, least: float) -> float | None:
    """Log ratio by which the sentinel itself moved, where that is more than its noise and than ``least``; else None.

    Two baseline values at least; the noise is that of single baseline values, not of their mean.
    """
    if reference.size < 2 or candidate_reference.size == 0:
        return None
    before, _ = winsorised(reference)
    scale = max(float(before.std(ddof=1)), SCALE_FLOOR)
    moved = float(np.median(candidate_reference) - np.median(reference))
    beyond = abs(moved) / (scale * math.sqrt(1.0 + 1.0 / reference.size))
    if abs(moved) > least and 2.0 * upper_tail(beyond, reference.size - 1.0) < SHIFT_ALPHA:
        return moved
    return None
