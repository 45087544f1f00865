"""A session's value of a metric from its requests: the median, or a higher percentile where the count allows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phasegate.stats.percentile import nearest_rank, needed_to_leave_maximum

MEDIAN = 50.0


def session_level(values: Sequence[float], percentile: float = MEDIAN) -> float | None:
    """The session's percentile of its requests; None where it has too few to tell the percentile from the maximum.

    The median is interpolated, any other percentile by nearest rank.
    """
    if len(values) == 0:
        return None
    if percentile == MEDIAN:
        return float(np.median(np.asarray(values, dtype=np.float64)))
    if percentile > MEDIAN and len(values) < needed_to_leave_maximum(percentile):
        return None
    return nearest_rank(values, percentile)
