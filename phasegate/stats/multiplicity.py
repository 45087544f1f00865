"""Many comparisons in one build: which rejections stand.

Gated comparisons share the build's chance of a false alarm (Holm), each by its weight. Advisory ones only share the
expected portion of false remarks among the remarks (Benjamini and Yekutieli), since nothing fails by them.

Either way a hypothesis falls where its p is at most what is allowed to it: the limit of the step in which it was
decided, so that a sentence can state the limit that was applied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Tested:
    """Whether a hypothesis falls, and the largest p with which it does."""

    falls: bool
    allowed: float


@dataclass(frozen=True, slots=True)
class Correction:
    """The correction of a family of hypotheses.

    Attributes:
        alpha: chance of any false rejection, or the portion of false ones among the rejections.
        weights: shares of the chance, one for each hypothesis; None where the portion is held.
    """

    alpha: float
    weights: Sequence[float] | None = None

    def levels(self, count: int) -> list[float]:
        """What each of so many hypotheses can count on, whatever becomes of the others: its limit in the first step."""
        if self.weights is None:
            return [self.alpha / (count * harmonic(count)) for _ in range(count)]
        total = math.fsum(self.weights)
        return [self.alpha * one / total for one in self.weights]

    def tested(self, p_values: Sequence[float]) -> list[Tested]:
        """How each of them ends, in the order given."""
        if self.weights is None:
            allowed = benjamini_yekutieli(p_values, self.alpha)
        else:
            allowed = holm(p_values, self.alpha, self.weights)
        return [Tested(p <= limit, limit) for p, limit in zip(p_values, allowed, strict=True)]


def holm(p_values: Sequence[float], alpha: float, weights: Sequence[float] | None = None) -> list[float]:
    """The p allowed to each hypothesis when the chance of any false rejection shall be ``alpha``, under any dependence.

    Each step divides ``alpha`` by weight among the hypotheses that still stand (Holm 1979, section 4). The limits of
    all that are left when a step rejects nothing are those of that step.

    Args:
        weights: positive, one for each hypothesis; None for equal ones.
    """
    share = np.ones(len(p_values)) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(np.asarray(p_values, dtype=np.float64) / share, kind="stable")
    standing = np.cumsum(share[order][::-1])[::-1]  # weight of a step's hypothesis and of all behind it
    allowed = np.zeros(len(p_values))
    for step, index in enumerate(order):
        allowed[order[step:]] = alpha * share[order[step:]] / standing[step]
        if not p_values[index] <= allowed[index]:
            break
    return [float(one) for one in allowed]


def benjamini_yekutieli(p_values: Sequence[float], rate: float) -> list[float]:
    """The p allowed to each hypothesis when a portion of ``rate`` of the rejections may be false on average, under any
    dependence (Benjamini and Yekutieli 2001, theorem 1.3)."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    steps = [(rank + 1) * rate / (n * harmonic(n)) for rank in range(n)]
    falling = max((rank + 1 for rank, index in enumerate(order) if p_values[index] <= steps[rank]), default=0)
    allowed = [0.0] * n
    for rank, index in enumerate(order):
        allowed[index] = steps[falling - 1] if rank < falling else steps[falling]
    return allowed


def harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n."""
    return math.fsum(1.0 / i for i in range(1, n + 1))
