"""What an update changes: every measured value before and after, with an interval on the ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.core.session import Session
from phasegate.stats.intervals import mean_interval

BOUND = 0.025
"""Error probability of each end of the interval: together a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of one workload in two sets of sessions.

    Attributes:
        workload, metric: what.
        before, after: median over sessions of the session medians, in seconds; None where a side lacks it.
        ratio: after / before; None where a side lacks it.
        low, high: 95 % interval of the ratio, from Student's intervals of both sides' log medians; None with fewer than
            two sessions a side.
    """

    workload: str
    metric: str
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None


def changes(before: Sequence[Session], after: Sequence[Session]) -> list[Change]:
    """Every metric of every workload that either side knows, in reading order."""
    old, new = _session_medians(before), _session_medians(after)
    return [_change(key, old.get(key, []), new.get(key, [])) for key in sorted({*old, *new})]


def _session_medians(sessions: Sequence[Session]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for session in sessions:
        for one in session.measurements:
            if one.samples:
                found.setdefault((one.workload, one.metric), []).append(float(np.median(one.samples)))
    return found


def _change(key: tuple[str, str], old: list[float], new: list[float]) -> Change:
    middles = [float(np.median(values)) if values else None for values in (old, new)]
    if middles[0] is None or middles[1] is None:
        return Change(*key, middles[0], middles[1], None, None, None)
    low, high = _interval(old, new)
    return Change(*key, middles[0], middles[1], middles[1] / middles[0], low, high)


def _interval(old: list[float], new: list[float]) -> tuple[float | None, float | None]:
    if min(len(old), len(new)) < 2:
        return None, None
    left, right = (mean_interval(np.log(values), BOUND) for values in (old, new))
    # Each half-width already holds its own side's t quantile; together they are no narrower than Welch's.
    d = right.mean - left.mean
    half = math.hypot(left.mean - left.low, right.mean - right.low)
    return math.exp(d - half), math.exp(d + half)
