"""Intervals for a mean, a median and a proportion, exact at the small counts of one session.

Every bound is one-sided at the confidence asked for, because laws are judged by one-sided tests: a pair of bounds
at 95 % each is the "90 % interval" of two one-sided tests (Schuirmann 1987). The median's interval, which is for
tables, is two-sided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from phasegate.stats.percentile import percentile_interval

POWER = 0.9
"""Chance of a decision that `more_needed` plans for: common practice in sample-size planning."""

MOST_NEEDED = 200
"""`more_needed` never asks for more: with such noise the measuring has to change, not its length."""

FINEST_RESOLUTION = 0.5
"""Share of a boundary that `more_needed` plans to resolve at the finest. An estimate next to a boundary sits there by
chance more often than by truth; to resolve its last distance would ask for absurd numbers."""


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean with a lower and an upper bound, each one-sided at ``confidence``.

    Attributes:
        mean, low, high: in the unit of the values.
        spread: standard deviation with n - 1.
        n: number of values.
        confidence: of each bound.
    """

    mean: float
    low: float
    high: float
    spread: float
    n: int
    confidence: float

    def scaled(self, factor: float) -> MeanInterval:
        """The same interval in another unit; ``factor`` is positive."""
        return MeanInterval(
            self.mean * factor, self.low * factor, self.high * factor, self.spread * factor, self.n, self.confidence
        )


def mean_interval(values: Sequence[float] | NDArray[np.float64], alpha: float) -> MeanInterval:
    """Student's interval for the mean of independent values, one per block.

    ``alpha`` is the error probability of each bound. Robustness is the caller's: see `blocks.calmed`.

    Raises:
        ValueError: fewer than 2 values, or one that is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        raise ValueError(f"an interval of a mean needs at least 2 finite values, got {array.tolist()}")
    mean, spread = float(array.mean()), float(array.std(ddof=1))
    half = float(special.stdtrit(array.size - 1, 1 - alpha)) * spread / math.sqrt(array.size)
    return MeanInterval(mean, mean - half, mean + half, spread, int(array.size), 1 - alpha)


def more_needed(interval: MeanInterval, boundaries: Sequence[float]) -> int:
    """How many more values would probably move the interval off all boundaries that it now covers.

    Plans with the present mean and spread for a power of 0.9, and never for a finer resolution than
    `FINEST_RESOLUTION` of a boundary; at least 1, at most `MOST_NEEDED`.
    """
    distance = min(
        max(abs(interval.mean - boundary), FINEST_RESOLUTION * abs(boundary)) for boundary in boundaries
    )  # fmt: skip
    counts = np.arange(interval.n + 1, interval.n + MOST_NEEDED)
    quantiles = special.stdtrit(counts - 1.0, interval.confidence) + special.ndtri(POWER)
    enough = quantiles * interval.spread <= distance * np.sqrt(counts)
    return int(np.argmax(enough)) + 1 if enough.any() else MOST_NEEDED


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """A median with its two-sided, distribution-free interval.

    Attributes:
        median: in the unit of the values; the mean of the middle two for an even count.
        low, high: order statistics that enclose the true median; infinite where there are too few values.
        n: number of values.
        confidence: two-sided.
        warnings: what is missing, worded as a remedy.
    """

    median: float
    low: float
    high: float
    n: int
    confidence: float
    warnings: tuple[str, ...] = ()


def median_interval(values: Sequence[float], confidence: float = 0.95) -> MedianInterval:
    """The median of some values and an interval that needs no assumption on their distribution.

    Raises:
        ValueError: there is no value, or one is NaN.
    """
    found = percentile_interval(values, 50, confidence=confidence)
    return MedianInterval(
        float(np.median(np.asarray(values, dtype=np.float64))), found.low, found.high, found.n, confidence,
        found.warnings,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProportionInterval:
    """A share with bounds that are each one-sided at ``confidence`` (Clopper and Pearson 1934)."""

    share: float
    low: float
    high: float
    hits: int
    n: int
    confidence: float


def proportion_interval(hits: int, n: int, alpha: float) -> ProportionInterval:
    """The exact interval of a share; ``alpha`` is the error probability of each bound.

    Raises:
        ValueError: n is 0 or hits is outside 0..n.
    """
    if n < 1 or not 0 <= hits <= n:
        raise ValueError(f"a share needs 0 <= hits <= n and n >= 1, got {hits} of {n}")
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, n - hits + 1, alpha))
    high = 1.0 if hits == n else float(special.betaincinv(hits + 1, n - hits, 1 - alpha))
    return ProportionInterval(hits / n, low, high, hits, n, 1 - alpha)
