"""The steps that values come in, and what rounding to them may add to a difference.

A server or a tool that writes whole milliseconds makes 8.4 and 8.6 ms look equal or 12 % apart. No number of sessions
averages that out: where true values hardly vary, all of them are rounded the same way. So the resolution enters the
variance of single values (at least step^2 / 12) and, apart from it, the error of a difference of means.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

DIGITS = 5
"""Significant digits within which steps are looked for: finer ones are below a ten-thousandth and change nothing."""

ON_GRID = 1e-6
"""A value this close to a multiple, in steps, is one: arithmetic on 9 ms gives 0.009000000000000001."""

ENOUGH_VALUES = 8
"""Values from which on one side's steps are believed by themselves: fewer may lie on coarse multiples by accident."""

LEAST_STEPS = 5.0
"""Steps that a value holds at least where it is the only one of its side: 200 ms is hardly rounded to 100."""

SURE = 0.05
"""Chance that the values vary less than the least that is reckoned with."""

_UNIFORM = 1.0 / 12.0


def grid_step(*sides: ArrayLike) -> float:
    """The largest step that all values of all sides are multiples of, or all of a side where it alone is rounded.

    In the values' unit; 0.0 where they come in none that matters. One side may be rounded and the other not: another
    version of a tool, another exporter. The coarser steps count, since they alone may make a difference.

    Where no side holds two different values, their common multiple says little (8 and 12 ms are rounded to whole
    milliseconds rather than to 4), and the place of the last digit counts. A single value that never changes shows
    no step at all, unless the other side's do change.

    Args:
        sides: positive values of each side of a comparison; the more, the better the step is known.
    """
    values = [np.asarray(side, dtype=np.float64) for side in sides]
    each = [np.unique(side) for side in values]
    together = np.unique(np.concatenate(each)) if each else np.array([])
    if together.size < 2:
        return 0.0
    varied = any(side.size > 1 for side in each)
    shared = _step_of(together, common=varied)
    if not varied:
        return shared
    alone = [
        _step_of(one, common=one.size > 1) for one, side in zip(each, values, strict=True) if side.size >= ENOUGH_VALUES
    ]
    return max([shared, *alone])


def _step_of(values: NDArray[np.float64], *, common: bool) -> float:
    """The step of different values: their common multiple, or the place of their last digit."""
    leading = math.floor(math.log10(float(values[-1]) / (LEAST_STEPS if values.size == 1 else 1.0)))
    for place in range(leading, leading - DIGITS, -1):
        multiples = values * 10.0**-place
        whole = np.rint(multiples)
        if np.all(np.abs(multiples - whole) <= ON_GRID):
            factor = int(np.gcd.reduce(whole.astype(np.int64))) if common else 1
            return float(factor * 10.0**place)
    return 0.0


def deviation_of_rounding(step: float, level: float) -> float:
    """Standard deviation of the log of values near ``level`` that are spread evenly over one step."""
    return math.sqrt(_UNIFORM) * step / level


def rounding_error(values: ArrayLike, step: float) -> float:
    """How far the mean of rounded values may lie off the mean of the true ones, at most, in their unit.

    Half a step where the values stay within one step of each other: the true ones may then all lie on one side. True
    values that vary by more are rounded up as often as down; for normal ones with deviation s the mean is off by no
    more than ``step / pi * exp(-2 pi^2 s^2 / step^2)`` (the first term of the Fourier series of the rounding error).
    One far value is left out beforehand, since it does not show how the others vary.
    """
    if step <= 0.0:
        return 0.0
    kept = _without_the_farthest(np.asarray(values, dtype=np.float64))
    if kept.size < 2 or float(np.ptp(kept)) <= step * (1.0 + ON_GRID):
        return step / 2.0
    df = kept.size - 1
    least = float(kept.var(ddof=1)) * df / float(chdtri(df, SURE)) / step**2 - _UNIFORM
    return step * min(0.5, math.exp(-2.0 * math.pi**2 * max(0.0, least)) / math.pi)


def rounding_of_difference(baseline: ArrayLike, candidate: ArrayLike, off: float) -> tuple[float, float]:
    """How much of a rise and of a fall may be rounding, as log ratios, where each side's mean may be off by ``off``.

    The candidate's is taken to be off by as much as the baseline's: it has too few sessions to show how they vary.
    """
    if off == 0.0:
        return 0.0, 0.0
    old, new = _level(baseline), _level(candidate)
    return _up(old, off) + _down(new, off), _down(old, off) + _up(new, off)


def _up(level: float, off: float) -> float:
    return math.log1p(off / level)


def _down(level: float, off: float) -> float:
    return -math.log1p(-off / level) if off < level else math.inf


def _level(values: ArrayLike) -> float:
    return math.exp(float(np.mean(np.log(np.asarray(values, dtype=np.float64)))))


def _without_the_farthest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if values.size < 3:
        return values
    return np.asarray(np.delete(values, int(np.argmax(np.abs(values - np.median(values))))), dtype=np.float64)
