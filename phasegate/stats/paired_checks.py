"""Second opinions on paired differences, which assume less than the t-test: Wilcoxon's signed ranks and sign flips.

They cannot decide a build: eight blocks give no p below 1/256. They warn where they disagree.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from phasegate.stats.power import upper_tail

MOST_ENUMERATED = 14
"""Up to so many blocks all sign patterns are tried; beyond, the sum of flipped values is all but normal."""


def signed_rank_p(differences: NDArray[np.float64]) -> float:
    """One-sided p of "positive" by Wilcoxon's signed ranks (1945); ties by mid-ranks, zeros dropped."""
    nonzero = differences[differences != 0.0]
    if nonzero.size == 0:
        return 1.0
    return flip_p(np.sign(nonzero) * rankdata(np.abs(nonzero)))


def flip_p(values: NDArray[np.float64]) -> float:
    """One-sided p of "positive" when every value might as well have had the other sign (Fisher 1935)."""
    n = values.size
    total = float(values.sum())
    if n > MOST_ENUMERATED:
        size = math.sqrt(float(values @ values))
        return upper_tail(total / size, math.inf) if size > 0.0 else 1.0
    sums = _patterns(n) @ np.abs(values)
    return float(np.mean(sums >= total - 1e-12 * max(1.0, abs(total))))


@lru_cache(maxsize=16)
def _patterns(n: int) -> NDArray[np.float64]:
    """All 2^n rows of n signs."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
