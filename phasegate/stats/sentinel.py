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
from phasegate.stats.winsor import winsorised

Logs = NDArray[np.float64]

LEAST_SESSIONS = 5
"""Fewer baseline sessions cannot show a relation."""

SHIFT_ALPHA = 0.001
"""Chance of calling the host changed where it is not, for one comparison."""

SCALE_FLOOR = 1e-3
"""Least standard deviation of the sentinel's logs."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """A comparison's logs with the host's part taken out.

    Attributes:
        baseline, candidate: logs, one per session.
        coefficient: how much of the sentinel was subtracted; 0 where none was.
        leverage: what the uncertain coefficient adds to the variance of the difference, in units of one session's
            variance.
    """

    baseline: Logs
    candidate: Logs
    coefficient: float = 0.0
    leverage: float = 0.0


def coefficients(pairs: Sequence[tuple[Logs, Logs] | None]) -> list[float]:
    """How much of the sentinel to subtract, for comparisons of one metric.

    Args:
        pairs: (metric, sentinel) logs of each comparison's baseline sessions; None where it has no sentinel.
    """
    usable = [pair for pair in pairs if pair is not None and pair[0].size >= LEAST_SESSIONS]
    if not usable:
        return [0.0] * len(pairs)
    # One coefficient for the metric: what slows one prefill by a tenth slows another by about a tenth.
    cross = total = own = 0.0
    for metric, reference in usable:
        y, _ = winsorised(metric, 0.0)
        z, _ = winsorised(reference, 0.0)
        y, z = y - y.mean(), z - z.mean()
        cross += float(y @ z)
        total += float(z @ z)
        own += float(y @ y)
    if total <= 0.0 or own <= 0.0 or cross <= 0.0:
        return [0.0] * len(pairs)
    explained = min(cross * cross / (total * own), 1.0 - 1e-9)
    # The comparisons of a session share its host, so their number does not multiply the evidence.
    df = min(metric.size for metric, _ in usable) - 2
    evidence = explained * df / (1.0 - explained)
    shrunk = min(1.0, cross / total) * max(0.0, 1.0 - 1.0 / evidence)
    return [shrunk if pair is not None and pair[0].size >= LEAST_SESSIONS else 0.0 for pair in pairs]


def adjust(
    baseline: Logs, candidate: Logs, baseline_sentinel: Logs, candidate_sentinel: Logs, coefficient: float
) -> Adjusted:
    """Subtract the sentinel from both sides; all logs, one per session."""
    centre = float(baseline_sentinel.mean())
    spread = float(((baseline_sentinel - centre) ** 2).sum())
    moved = float(candidate_sentinel.mean()) - centre
    return Adjusted(
        baseline - coefficient * (baseline_sentinel - centre),
        candidate - coefficient * (candidate_sentinel - centre),
        coefficient,
        moved * moved / spread if spread > 0.0 else 0.0,
    )


def host_shift(reference: Logs, candidate_reference: Logs, least: float) -> float | None:
    """Log ratio by which the sentinel itself moved, where that is more than its noise and than ``least``; else None.

    Two baseline values at least; the noise is that of single baseline values, not of their mean.
    """
    if reference.size < 2 or candidate_reference.size == 0:
        return None
    before, _ = winsorised(reference, 0.0)
    scale = max(float(before.std(ddof=1)), SCALE_FLOOR)
    moved = float(np.median(candidate_reference) - np.median(reference))
    beyond = abs(moved) / (scale * math.sqrt(1.0 + 1.0 / reference.size))
    if abs(moved) > least and 2.0 * upper_tail(beyond, reference.size - 1.0) < SHIFT_ALPHA:
        return moved
    return None
