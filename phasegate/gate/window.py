"""Which of the stored sessions the candidate is judged by.

The window counts stored sessions, newest first, and never the candidate. Sessions from before a change of level that
somebody accepted (an update of the baseline after a faster or slower release) speak of another server; they are left
out, so that an old level can neither hide a regression nor raise an alarm. Slow drift is the work of a pinned baseline.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.session import Session
from phasegate.core.units import format_percent
from phasegate.gate.levels import Key, Side
from phasegate.gate.policy import Policy

LEAST = 3
"""Sessions needed on each side of a change of level before it is believed."""

GAP = 0.5
"""The gap between the sides of a change is at least this share of the range of either side: chance leaves no such gap
between sessions of one level."""


@dataclass(frozen=True, slots=True)
class Window:
    """The sessions to judge by, oldest first, and what was left out."""

    sessions: tuple[Session, ...]
    warning: str | None = None


def choose_window(stored: Sequence[Session], policy: Policy, newest: int | None = None) -> Window:
    """The newest sessions of one level.

    Args:
        stored: sessions; those of equal time stay in the given order.
        policy: for tolerances: a change within one is none.
        newest: how many are looked at; None for all.
    """
    ordered = sorted(stored, key=lambda session: session.recorded_at)
    ordered = ordered[-newest:] if newest else ordered
    side = Side.of(ordered)
    changes = [change for key in side.by_key if (change := _newest_change(side, key, policy)) is not None]
    if not changes:
        return Window(tuple(ordered))
    split, said = max(changes)
    kept = tuple(ordered[split:])
    return Window(
        kept, f"judged by the newest {len(kept)} sessions: {split} older ones stand at another level ({said})"
    )


def _newest_change(side: Side, key: Key, policy: Policy) -> tuple[int, str] | None:
    """(index of the first session after it, a clause) of the newest change of level of one metric, or None."""
    workload, metric = key
    facts = policy.facts(metric)
    if facts is None or facts.phase == "client" or policy.is_sentinel(workload):
        return None
    indexed = list(side.levels(key).items())
    logs = [math.log(value) for _, value in indexed]
    limit = math.log1p(policy.applied(workload, metric, facts.phase).effective_tolerance(side.level(key)))
    lowest, highest = list(itertools.accumulate(logs, min)), list(itertools.accumulate(logs, max))
    lowest_after = list(itertools.accumulate(reversed(logs), min))[::-1]
    highest_after = list(itertools.accumulate(reversed(logs), max))[::-1]
    for split in range(len(logs) - LEAST, LEAST - 1, -1):
        gap = max(lowest_after[split] - highest[split - 1], lowest[split - 1] - highest_after[split])
        ranges = highest[split - 1] - lowest[split - 1], highest_after[split] - lowest_after[split]
        if gap <= GAP * max(ranges):
            continue
        shift = statistics.median(logs[split:]) - statistics.median(logs[:split])
        if gap > 0 and abs(shift) > limit:
            return indexed[split][0], f"{workload} {metric} changed by {format_percent(math.expm1(shift), signed=True)}"
    return None
