"""When requests are due: pure arithmetic, without a clock.

Every schedule is a row of offsets in seconds from the start of the run, not falling, the first at 0. Open-loop
schedules are made in two steps: first on a scale on which one request comes per unit (evenly, or with random
gaps), then through the inverse of the cumulative rate. A constant rate divides by it; a ramp solves a quadratic
(time change of a renewal process; Cinlar, Introduction to Stochastic Processes, 1975, section 4.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

POISSON = 1.0
"""The burstiness of a Poisson process."""

EVEN = math.inf
"""The burstiness of requests at equal distances."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many requests a second are to come.

    Attributes:
        first: at the start; infinite for everything at once.
        last: at the end of the span and from then on; equal to ``first`` for a constant rate.
        span: seconds over which the rate goes from first to last in a straight line; 0 for a constant rate.
    """

    first: float
    last: float
    span: float = 0.0

    def __post_init__(self) -> None:
        if not (self.first >= 0 and self.last > 0):
            raise ValueError(f"a rate from {self.first:g} to {self.last:g} requests/s is not possible; use more than 0")
        if not 0 <= self.span < math.inf:
            raise ValueError(f"a ramp over {self.span:g} s is not possible")
        if self.first != self.last and not (self.span > 0 and math.isfinite(self.first + self.last)):
            raise ValueError("a ramp needs a span above 0 and finite rates")

    @classmethod
    def constant(cls, per_second: float) -> Rate:
        """The same rate all the time."""
        return cls(per_second, per_second)

    @property
    def is_ramp(self) -> bool:
        """Whether it changes."""
        return self.first != self.last


def even(rate: Rate, count: int) -> tuple[float, ...]:
    """Offsets of ``count`` requests at equal distances (of a ramp: equal distances in expected requests)."""
    return _through(rate, np.arange(count, dtype=float))


def bursty(rate: Rate, count: int, burstiness: float, rng: np.random.Generator) -> tuple[float, ...]:
    """Offsets of ``count`` requests with gamma-distributed gaps.

    ``burstiness`` is the gamma distribution's shape, as in vLLM's ``bench serve``: 1 is a Poisson process, below 1
    comes in bursts, above 1 is more regular, `EVEN` has no chance in it. The gaps' coefficient of variation is
    1 / sqrt(burstiness). They are then stretched so that the last request is due when the rate says, as vLLM does:
    a handful of random gaps is easily a fifth faster or slower than its rate, which would be another load. For a
    Poisson process this is the process given its count.

    Raises:
        ValueError: the burstiness is not above 0.
    """
    if not burstiness > 0:
        raise ValueError(f"a burstiness of {burstiness:g} is not possible; use more than 0 (1 is Poisson)")
    if math.isinf(burstiness):
        return even(rate, count)
    if count < 2:
        return even(rate, count)
    arrivals = np.concatenate(([0.0], np.cumsum(rng.gamma(shape=burstiness, size=count - 1))))
    # Shapes near 0 can draw nothing but zeros; then all but the last come at once.
    total = arrivals[-1] if arrivals[-1] > 0 else 1.0
    arrivals = arrivals / total * (count - 1)
    arrivals[-1] = count - 1
    return _through(rate, arrivals)


def poisson(rate: Rate, count: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Offsets of ``count`` requests that come independently of each other."""
    return bursty(rate, count, POISSON, rng)


def replay(timestamps: Sequence[float], scale: float = 1.0) -> tuple[float, ...]:
    """Offsets of a recorded row of moments in seconds, put into order, the first at 0.

    ``scale`` stretches time: 2 replays at half the speed, 0.1 ten times as fast.

    Raises:
        ValueError: the scale is not a finite number above 0.
    """
    if not 0 < scale < math.inf:
        raise ValueError(f"a time scale of {scale:g} is not possible; use more than 0 (0.5 replays twice as fast)")
    if not timestamps:
        return ()
    ordered = np.sort(np.asarray(timestamps, dtype=float))
    return tuple(((ordered - ordered[0]) * scale).tolist())


def mean_rate(offsets: Sequence[float]) -> float | None:
    """Requests a second between the first and the last offset; None where no time passes between them."""
    if len(offsets) < 2 or max(offsets) <= min(offsets):
        return None
    return (len(offsets) - 1) / (max(offsets) - min(offsets))


def _through(rate: Rate, expected: NDArray[np.float64]) -> tuple[float, ...]:
    """The moments at which the cumulative rate reaches each number of expected requests."""
    if not rate.is_ramp:
        return tuple((expected / rate.first).tolist())
    slope = (rate.last - rate.first) / rate.span
    in_ramp = (rate.first + rate.last) / 2 * rate.span
    rising = np.minimum(expected, in_ramp)
    # first * t + slope / 2 * t^2 = expected, solved in the form that stays exact for small slopes.
    root = np.sqrt(np.maximum(rate.first**2 + 2 * slope * rising, 0.0))
    with np.errstate(invalid="ignore"):
        within = np.where(rising > 0, 2 * rising / (rate.first + root), 0.0)
    after = np.maximum(expected - in_ramp, 0.0) / rate.last
    return tuple((within + after).tolist())
