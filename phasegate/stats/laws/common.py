"""What the laws share: results, the refusal to judge too few blocks, and words for numbers."""

from __future__ import annotations

import math
from dataclasses import replace

from phasegate.core.units import format_percent
from phasegate.stats.blocks import MIN_BLOCKS
from phasegate.stats.intervals import MOST_NEEDED, MeanInterval
from phasegate.stats.outcome import LawResult, Outcome


def too_few(law: str, n: int, unit: str, alpha: float) -> LawResult:
    """The result where there are fewer blocks than any law is judged on."""
    needed = MIN_BLOCKS - n
    reason = f"{n} complete blocks are too few to judge; {remedy(n, needed)}"
    return LawResult(law, Outcome.INCONCLUSIVE, reason, None, None, None, unit, 1 - alpha, n, needed)


def held_back(result: LawResult, disturbed: str | None) -> LawResult:
    """The result where the engine's host was disturbed: a breach is then not proven, and nothing becomes a pass.

    Intervals know the noise between repetitions. They do not know a host that was busy through half of them. Where the
    law is undecided, the host is named before the noise is: a quiet machine needs fewer repetitions than this one.

    Args:
        result: a law as judged.
        disturbed: what disturbed the host while the data were measured; None for nothing.
    """
    if disturbed is None or result.outcome is Outcome.PASS:
        return result
    if result.outcome is Outcome.INCONCLUSIVE:
        return replace(result, reason=f"{disturbed} meanwhile: measure on a quieter machine; seen: {result.reason}")
    reason = f"{disturbed} meanwhile, so no breach is proven: measure on a quieter machine; seen: {result.reason}"
    return replace(result, outcome=Outcome.INCONCLUSIVE, reason=reason, needed=None)


def remedy(n: int, needed: int | None) -> str:
    """What to do about an undecided law: how many more blocks, and how many that makes."""
    if needed is None:
        return ""
    if needed >= MOST_NEEDED:
        return (
            f"too noisy: {MOST_NEEDED} more repetitions of each length may not decide it; measure on a quieter machine"
        )
    return f"measure {needed} more repetitions of each length ({n + needed} in all)"


def sentence(*parts: str) -> str:
    """Non-empty parts joined to one sentence."""
    return "; ".join(part for part in parts if part)


def percent(interval: MeanInterval, *, signed: bool = True) -> str:
    """``+2.1 % [+0.3 %, +3.9 %]`` for an interval of fractions; without decimals where it is beyond 100 %."""
    digits = 0 if abs(interval.mean) >= 1 else 1
    values = (interval.low, interval.mean, interval.high)
    low, mid, high = (format_percent(x, signed=signed, digits=digits) for x in values)
    return f"{mid} [{low}, {high}]"


def as_ratio(logs: MeanInterval) -> MeanInterval:
    """An interval of log ratios as fractions: ratio - 1. The spread stays in logs."""
    return MeanInterval(
        math.expm1(logs.mean), math.expm1(logs.low), math.expm1(logs.high), logs.spread, logs.n, logs.confidence
    )
