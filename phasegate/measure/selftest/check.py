"""What a self-test found: checks that hold or do not, and counts with their exact intervals."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from phasegate.stats.intervals import proportion_interval

CONFIDENCE = 0.95
"""Of each bound of a count's interval."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the gate must do, and whether it did.

    Attributes:
        part: which part of the self-test asked.
        name: what was done to the candidate.
        wanted: what the gate must say.
        got: what it said, with numbers.
        holds: whether that is good enough.
        remedy: what to do where it is not; empty where it is.
    """

    part: str
    name: str
    wanted: str
    got: str
    holds: bool
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """The check as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Count:
    """How often something happened, with bounds that are each one-sided at `CONFIDENCE` (Clopper and Pearson).

    Attributes:
        hits, n: how often, of how many.
        low, high: bounds of the true share.
    """

    hits: int
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, n: int) -> Count:
        """A count of ``n``, at least 1."""
        found = proportion_interval(hits, n, 1.0 - CONFIDENCE)
        return cls(hits, n, found.low, found.high)

    def exceeds(self, share: float) -> bool:
        """Whether the true share is proven to lie above this one."""
        return self.low > share

    def __str__(self) -> str:
        share = 100.0 * self.hits / self.n
        return f"{self.hits} of {self.n} = {share:.1f} % (95 % bounds {100 * self.low:.2f} and {100 * self.high:.2f} %)"


def clean_builds_needed(alpha: float) -> int:
    """Unchanged builds without a single alarm that it takes to claim a rate of at most ``alpha``.

    With a true rate of ``alpha`` so many would pass without an alarm in only 1 - `CONFIDENCE` of cases.
    """
    return math.ceil(math.log(1.0 - CONFIDENCE) / math.log1p(-alpha))
