"""Many comparisons in one build: which rejections stand.

Gated comparisons share the build's chance of a false alarm (Holm). Advisory ones only share the expected portion of
false remarks among the remarks (Benjamini and Yekutieli), since nothing fails by them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses fall when the chance of any false rejection shall be ``alpha`` (Holm 1979); any dependence."""
    order = np.argsort(p_values, kind="stable")
    n = len(p_values)
    rejected = [False] * n
    for rank, index in enumerate(order):
        if not p_values[index] <= alpha / (n - rank):
            break
        rejected[index] = True
    return rejected


def benjamini_yekutieli(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which hypotheses fall when a portion of ``rate`` of the rejections may be false on average, under any dependence
    (Benjamini and Yekutieli 2001, theorem 1.3)."""
    n = len(p_values)
    if n == 0:
        return []
    order = np.argsort(p_values, kind="stable")
    allowed = [(rank + 1) * rate / (n * harmonic(n)) for rank in range(n)]
    passing = [rank for rank, index in enumerate(order) if p_values[index] <= allowed[rank]]
    kept = set(order[: passing[-1] + 1].tolist()) if passing else set()
    return [index in kept for index in range(n)]


def harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n."""
    return math.fsum(1.0 / i for i in range(1, n + 1))
