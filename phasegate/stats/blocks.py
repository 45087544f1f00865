"""Samples of one session as a table: rows are blocks, columns are levels, every block measured each level once.

Blocks pair the levels: what drifts during the session falls on all levels of a block alike. Laws are judged on one
number per block, so that the blocks, not the requests, are the independent values. Before that, single disturbed
requests are pulled in: a neighbour that makes one request three times slower must not decide a law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

MIN_BLOCKS = 5
"""Fewer blocks are never judged: below 5 a median of residuals cannot tell a disturbed request from noise."""

OUTLIER_SCALES = 3.5
"""A value this many robust deviations from its centre is disturbed (Iglewicz and Hoaglin 1993 recommend 3.5); of
undisturbed normal values one in two thousand lies beyond."""

PULLED_TO = 1.0
"""Robust deviations at which a disturbed value is put, on its own side: it then counts as an ordinary value and
leaves the spread what it is. At the limit itself, one of eight values would double the spread."""

SCALE_FLOOR = 1e-3
"""Least robust deviation, as a log ratio: differences of a tenth of a percent are never called disturbed."""

DISTURBED_SHARE = 0.15
"""More pulled-in values than this share and the result warns that the machine was not quiet."""

_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Table:
    """A checked block table, columns in ascending order of level.

    Attributes:
        levels: the levels, ascending.
        values: blocks x levels, positive, in seconds; disturbed values pulled in.
        pulled: how many values were pulled in.
    """

    levels: NDArray[np.float64]
    values: NDArray[np.float64]
    pulled: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.values.shape[0])

    @property
    def logs(self) -> NDArray[np.float64]:
        """Natural logarithms of the values."""
        return np.log(self.values)

    def warnings(self) -> tuple[str, ...]:
        """A remark where more values were disturbed than a quiet machine shows."""
        if self.pulled <= DISTURBED_SHARE * self.values.size:
            return ()
        return (
            f"{self.pulled} of {self.values.size} requests were far off the others; measure again on a quieter "
            "machine, or with the server pinned to its own cores",
        )


def table_of(levels: Sequence[float], samples: ArrayLike, *, least_levels: int = 2) -> Table:
    """Check a block table, order its columns and pull in disturbed values. The arguments stay as they are.

    Args:
        levels: one number per column, such as prompt lengths in tokens.
        samples: blocks x levels; complete blocks only. No block at all is a table of shape (0, levels).
        least_levels: how many levels the law needs.

    Raises:
        ValueError: shapes disagree, a level repeats, or a value is not a positive, finite number.
    """
    wanted = np.asarray(levels, dtype=np.float64)
    values = np.array(samples, dtype=np.float64)
    if values.size == 0:
        values = values.reshape(0, wanted.size)
    if values.ndim != 2 or values.shape[1] != wanted.size:
        raise ValueError(f"samples have shape {values.shape}; they must be blocks x {wanted.size} levels")
    if wanted.size < least_levels or np.unique(wanted).size != wanted.size:
        raise ValueError(f"levels are {wanted.tolist()}; this law needs at least {least_levels} different ones")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError("samples must be positive, finite seconds; leave failed requests and their block out")
    order = np.argsort(wanted)
    logs, pulled = calmed(np.log(values[:, order]))
    return Table(wanted[order], np.exp(logs), pulled)


def calmed(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """A block table of logs with single disturbed values pulled in, and how many were.

    A cell's residual is what remains after its level's median and its block's median residual (with 3 levels or
    more; with 2 a block's median could not tell which of the two was disturbed).
    """
    n, width = logs.shape
    if n < MIN_BLOCKS:
        return logs.copy(), 0
    residual = logs - np.median(logs, axis=0)
    if width >= 3:
        residual = residual - np.median(residual, axis=1, keepdims=True)
        residual = residual - np.median(residual, axis=0)
        scale = _paired_scale(logs)
    else:
        scale = _to_sigma(np.median(np.abs(residual), axis=0), n)
    scale = np.maximum(scale, SCALE_FLOOR)
    disturbed = np.abs(residual) > OUTLIER_SCALES * scale
    ordinary = np.where(disturbed, PULLED_TO * np.sign(residual) * scale, residual)
    return logs - residual + ordinary, int(disturbed.sum())


def _paired_scale(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Robust deviation of the cells of each level, free of block effects, one per level.

    From the differences between levels within blocks, since residuals against a block's median are too small: with
    three levels a third of them is zero. It is that of the whole table, or of the level where that is larger: one
    level's values alone are too few for a steady scale, and a noisier level must not be held to the others' noise.
    """
    n, width = logs.shape
    difference = logs[:, :, None] - logs[:, None, :]
    size = np.abs(difference - np.median(difference, axis=0))
    other = ~np.eye(width, dtype=bool)
    of_all = np.median(size[:, other])
    of_level = np.array([np.median(size[:, i, other[i]]) for i in range(width)])
    return _to_sigma(np.maximum(of_all, of_level), n) / math.sqrt(2)


def _to_sigma(median_size: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Standard deviation of normal values with that median absolute deviation from the median of n.

    Medians of few deviations are too small by n / (n - 0.8) (Croux and Rousseeuw 1992).
    """
    return np.asarray(_MAD_TO_SIGMA * n / (n - 0.8) * median_size, dtype=np.float64)
