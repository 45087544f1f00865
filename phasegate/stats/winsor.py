"""Values far from their fellows are pulled in to a limit, so that one bad session cannot decide anything alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LIMIT = 3.0
"""Robust standard deviations from the median at which a value is pulled in: of normal values one in 370 lies beyond."""

LEAST_VALUES = 5
"""Below 5 values their own spread cannot tell a bad one from noise."""

_MAD_TO_SIGMA = 1.4826


def robust_scale(values: NDArray[np.float64]) -> float:
    """Standard deviation of normal values with this median absolute deviation.

    That of few values is too small by n / (n - 0.8) (Croux and Rousseeuw 1992).
    """
    n = values.size
    return float(_MAD_TO_SIGMA * n / (n - 0.8) * np.median(np.abs(values - np.median(values))))


def winsorised(values: NDArray[np.float64], least_scale: float) -> tuple[NDArray[np.float64], int]:
    """The values with far ones pulled in to `LIMIT` scales from the median, and how many were.

    Args:
        values: n logs, one per session or block; unchanged.
        least_scale: a standard deviation known otherwise; with fewer than `LEAST_VALUES` values it is all there is,
            and 0 then leaves them as they are.
    """
    scale = least_scale if values.size < LEAST_VALUES else max(least_scale, robust_scale(values))
    if scale <= 0.0 or values.size < 3:
        return values, 0
    middle = np.median(values)
    pulled = np.clip(values, middle - LIMIT * scale, middle + LIMIT * scale)
    return pulled, int(np.count_nonzero(pulled != values))
