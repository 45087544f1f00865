"""Whether sessions are worse by their order alone, whatever kinds they are of (Mann and Whitney 1947, one-sided).

Where a server's starts fall into kinds, the noise of one kind says nothing of how many of each are met. The order of
sessions that all come from one mixture is left to chance, so its p holds for any mixture.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

MOST_PAIRS = 2000
"""Pairs of sessions up to which orders are counted; of more, their number is as good as normal."""


def rank_p(baseline: NDArray[np.float64], candidate: NDArray[np.float64]) -> float:
    """Chance that so many pairs as these have the worse one in the candidate, if nothing changed; exact for few.

    Args:
        baseline, candidate: logs, positive for worse, at least one each. Equal ones count for the baseline.
    """
    k, m = baseline.size, candidate.size
    worse = int(np.count_nonzero(candidate[:, None] > baseline[None, :]))
    if k * m > MOST_PAIRS:
        return float(ndtr((k * m / 2.0 + 0.5 - worse) / math.sqrt(k * m * (k + m + 1) / 12.0)))
    return min(1.0, max(0.0, float(_ways(k, m)[worse:].sum()) / math.comb(k + m, m)))


def _ways(k: int, m: int) -> NDArray[np.float64]:
    """In how many orders of k and m sessions each number of pairs, from 0 to k m, is the wrong way round."""
    ways = np.zeros(k * m + 1)
    ways[0] = 1.0
    # The Gaussian binomial coefficient, factor by factor.
    for one in range(1, m + 1):
        by = k + one
        ways[by:] -= ways[:-by].copy() if by <= k * m else 0.0
        for start in range(one):
            ways[start::one] = np.cumsum(ways[start::one])
    return ways
