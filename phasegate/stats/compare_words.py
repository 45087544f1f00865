"""The sentences of a comparison: numbers that decided, and what to do."""

from __future__ import annotations

import math

from phasegate.core.units import format_percent


def change(
    ratio: float, low: float | None, high: float | None, confidence: float, fails_from: float | None = None
) -> str:
    """How far the candidate moved, such as ``+3.1 %, fails from 2.5 %, 95 % interval +1.0 % to +5.2 %``.

    ``fails_from`` is a ratio like the others; None leaves it out.
    """
    moved = signed(ratio)
    if fails_from is not None:
        moved += f", fails from {signed(fails_from).removeprefix('+')}"
    if low is None or high is None:
        return moved
    return f"{moved}, {100 * confidence:g} % interval {signed(low)} to {signed(high)}"


def signed(ratio: float) -> str:
    """A ratio as a signed change in per cent."""
    return format_percent(ratio - 1.0, signed=True) if math.isfinite(ratio) and ratio < 1e4 else "beyond all bounds"


def percent(fraction: float) -> str:
    """A fraction in per cent, or words for one beyond any use."""
    return format_percent(fraction) if fraction < 1e3 else "more than a thousandfold"


MANY_SESSIONS = 20
"""More sessions than this nobody measures for one build; the remedy lies elsewhere."""

OTHERWISE = "compare both servers side by side in one sitting, or widen the tolerance"
OTHERWISE_PAIRED = "measure on a quieter host, send more requests a block, or widen the tolerance"


def needed(sessions: int | None, baseline: int | None, *, paired: bool = False) -> str:
    """What would decide, in a clause; ``paired`` says that blocks of both servers were compared."""
    unit, otherwise = ("block", OTHERWISE_PAIRED) if paired else ("candidate session", OTHERWISE)
    if sessions is not None and sessions > MANY_SESSIONS:
        return f"it would take {sessions} more {unit}s, so {otherwise}"
    if sessions is not None:
        return f"{sessions} more {unit}{'s' if sessions != 1 else ''} would decide"
    if baseline is not None:
        return f"{baseline} more baseline session{'s' if baseline != 1 else ''} would decide"
    return otherwise
