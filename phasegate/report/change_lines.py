"""What an update changes, one line for each measured value."""

from __future__ import annotations

from phasegate.core.units import format_percent
from phasegate.gate.changes import Change
from phasegate.gate.facts import facts_of
from phasegate.gate.validity import say


def change_line(change: Change) -> str:
    """Medians on both sides, the change, and its 95 % interval where both sides have two sessions."""
    facts = facts_of(change.metric)
    old, new = (
        "nothing" if value is None else say(value, facts) if facts is not None else f"{value:.4g}"
        for value in (change.before, change.after)
    )
    line = f"{change.workload} {change.metric}: {old} -> {new}"
    if change.ratio is None:
        return line
    line += f", {format_percent(change.ratio - 1, signed=True)}"
    if change.low is None or change.high is None:
        return f"{line} (one session on a side: no interval)"
    low, high = (format_percent(end - 1, signed=True) for end in (change.low, change.high))
    return f"{line}, 95 % interval {low} to {high}"
