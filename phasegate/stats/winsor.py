"""Values far from their fellows are pulled in, so that one bad session can neither shift a mean nor widen a spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LIMIT = 3.5
"""A value this many robust deviations from the median is far off (Iglewicz and Hoaglin 1993 recommend 3.5)."""

PULLED_TO = 1.5
"""Robust deviations at which a far value is put, on its own side. At the limit itself one of eight values would double
the variance, and the comparison would lose its power to a single bad session of the baseline."""

LIMIT_OF_FEW = 5.0
"""The same below `FEW` values, whose own spread is often too small by half: at 3.5 about one clean series in ten would
have a value pulled in, and its variance would then be too small for the 1 % that a build is promised."""

FEW = 12
"""Values below which a series counts as short."""

LEAST_VALUES = 5
"""Below 5 values their own spread cannot tell a bad one from noise."""

SCALE_FLOOR = 1e-3
"""Least robust deviation, as a log ratio: differences of a tenth of a percent are never called far."""

PULLED_SHARE = 4
"""One in so many values may be pulled in, and one always. More are no bad sessions but how the series is, such as one
whose values mostly look equal."""

TOGETHER = 0.25
"""Several far values that deviate from each other by no more than this share of their distance from the median are no
bad sessions either, which are bad in different measure, but a kind of session of its own. They stay, and so does the
spread that they show."""

KIND_SHARE = 20
"""... from one in so many values on. Fewer of a long series are bad sessions, however they lie."""

_MAD_TO_SIGMA = 1.4826


def robust_scale(values: NDArray[np.float64]) -> float:
    """Standard deviation of normal values with this median absolute deviation.

    That of few values is too small by n / (n - 0.8) (Croux and Rousseeuw 1992).
    """
    n = values.size
    return _MAD_TO_SIGMA * n / (n - 0.8) * median_of(np.abs(values - median_of(values)))


def median_of(values: NDArray[np.float64]) -> float:
    """The median of a few finite values; NumPy's own takes ten times as long for them, and a gate needs thousands."""
    ordered = np.sort(values)
    middle = values.size // 2
    return float(ordered[middle] if values.size % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0)


def far_limit(n: int) -> float:
    """Robust deviations from the median beyond which one of n values is far off."""
    return LIMIT if n >= FEW else LIMIT_OF_FEW


def _lie_together(off: NDArray[np.float64]) -> bool:
    """Whether some far values lie close to each other, for how far they are off the median."""
    return float(off.std(ddof=1)) <= TOGETHER * float(np.abs(off).min())


def winsorised(
    values: NDArray[np.float64], known_scale: float = 0.0, least_scale: float = SCALE_FLOOR
) -> tuple[NDArray[np.float64], int]:
    """The values with far ones pulled in, and how many were; none where more than a few are far.

    Args:
        values: n logs, one per session or block; unchanged.
        known_scale: a standard deviation known from elsewhere, 0 for none. With fewer than `LEAST_VALUES` values it is
            all there is, and without it they stay as they are.
        least_scale: least robust deviation of the values' own.
    """
    n = values.size
    scale = known_scale if n < LEAST_VALUES else max(known_scale, robust_scale(values), least_scale)
    if scale <= 0.0 or n < 3:
        return values, 0
    middle = median_of(values)
    far = np.abs(values - middle) > far_limit(n) * scale
    count = int(np.count_nonzero(far))
    a_kind = count > 1 and count * KIND_SHARE >= n and _lie_together(values[far] - middle)
    if count > max(1, n // PULLED_SHARE) or a_kind:
        return values, 0
    return np.where(far, middle + PULLED_TO * scale * np.sign(values - middle), values), count
