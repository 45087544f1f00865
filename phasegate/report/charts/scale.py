"""From values to places: linear and logarithmic scales with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """A scale from values to pixels.

    Attributes:
        low, high: values at the ends; both above 0 where ``log``.
        start, end: pixels of the ends; ``end`` may be the smaller one.
        log: whether equal ratios take equal room.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value; values beyond an end lie on it."""
        inside = min(max(value, self.low), self.high)
        low, high, here = (math.log(one) for one in (self.low, self.high, inside)) if self.log else (
            self.low, self.high, inside,
        )  # fmt: skip
        share = (here - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values on the scale, about so many."""
        return log_ticks(self.low, self.high) if self.log else nice_ticks(self.low, self.high, count)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten within a range."""
    if not high > low:
        return [low]
    step = _nice_step((high - low) / max(count, 1))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _nice_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999999)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten within a range, powers alone where those are many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors: Sequence[int] = (1, 2, 5) if math.log10(high / low) < 2.2 else (1,)
    found = [factor * 10.0**decade for decade in decades for factor in factors]
    return [one for one in found if low * 0.999 <= one <= high * 1.001]


def up_to(values: Sequence[float], start: float, end: float, room: float = 1.08) -> Scale:
    """A linear scale from 0 to a little above the largest value."""
    largest = max((one for one in values if math.isfinite(one)), default=1.0)
    return Scale(0.0, (largest or 1.0) * room, start, end)
