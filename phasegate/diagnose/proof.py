"""What a gate has proven slower: what rules about changes must rest on where a gate has compared the two sittings.

A diagnosis judges no noise, so in a gated run it may call nothing slower that the gate did not: a median that grew,
with an interval that includes no change, is nothing to explain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phasegate.core.units import format_percent
from phasegate.gate.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True)
class Proven:
    """One comparison that a gate proved slower.

    Attributes:
        workload, metric: as the gate names them; ``metric`` is a median's where it has no percentile.
        gated: whether it decides the build; the others inform.
        ratio, low, high: now / before, with its interval; ``low`` is above 1.
    """

    workload: str
    metric: str
    gated: bool
    ratio: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """``+155 % [+120 %, +190 %], proven by the gate``."""
        amount, low, high = (format_percent(one - 1, signed=True) for one in (self.ratio, self.low, self.high))
        where = "" if self.gated else " in a comparison that only informs"
        return f"{amount} [{low}, {high}], proven by the gate{where}"

    @property
    def name(self) -> str:
        """The comparison with its amount, for where no rule explains it."""
        return f"{self.workload} {self.metric} {self.words}"


@dataclass(frozen=True, slots=True)
class Proof:
    """Every comparison that a gate proved slower, in the gate's order."""

    rows: tuple[Proven, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Proof:
        """The rows that are regressions of times, with an interval that excludes no change."""
        return cls(
            tuple(
                Proven(row.workload, row.metric, row.gated, row.ratio, row.ratio_low, row.ratio_high)
                for row in findings
                if row.verdict is Verdict.REGRESSION
                and row.ratio is not None
                and row.ratio_low is not None
                and row.ratio_high is not None
                and row.ratio_low > 1
            )
        )

    def row(self, workload: str, metric: str) -> Proven | None:
        """The row of a workload's median; None where it was not proven slower."""
        return next((one for one in self.rows if (one.workload, one.metric) == (workload, metric)), None)

    @property
    def gated(self) -> tuple[Proven, ...]:
        """Those that decide the build."""
        return tuple(one for one in self.rows if one.gated)
