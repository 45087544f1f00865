"""Slopes and ordered trends over the levels of a block table, one number per block."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from phasegate.stats.blocks import Table


def block_slopes(table: Table) -> NDArray[np.float64]:
    """Slope of each block over the levels: the median of the slopes of all pairs (Theil 1950, Sen 1968).

    In the unit of the values per unit of level; n floats, one per block.
    """
    pairs = itertools.combinations(range(table.levels.size), 2)
    slopes = [
        (table.values[:, j] - table.values[:, i]) / (table.levels[j] - table.levels[i]) for i, j in pairs
    ]  # fmt: skip
    return np.asarray(np.median(np.array(slopes), axis=0), dtype=np.float64)


def rising_p(table: Table) -> float:
    """p-value of "later levels are not higher", by ranks within blocks.

    Page's test (1963) for three levels or more; for two it is the sign test. Small when values rise with level.
    """
    if table.levels.size == 2:
        up = int((table.values[:, 1] > table.values[:, 0]).sum())
        return float(stats.binomtest(up, table.blocks, 0.5, alternative="greater").pvalue)
    return float(stats.page_trend_test(table.values).pvalue)
