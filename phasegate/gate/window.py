"""Which of the stored sessions the candidate is judged by.

The window counts stored sessions, newest first, and never the candidate. Sessions from before a change of level that
somebody accepted (an update of the baseline after a faster or slower release) speak of another server; they are left
out, so that an old level can neither hide a regression nor raise an alarm. Slow drift is the work of a pinned baseline.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy
from phasegate.session import Session
from phasegate.units import format_percent

WINDOW = 20
"""Newest sessions that are looked at: more adds little to the evidence and much to the age."""

LEAST = 3
"""Sessions needed on each side of a change of level before it is believed."""


@dataclass(frozen=True, slots=True)
class Window:
    """The sessions to judge by, oldest first, and what was left out."""

    sessions: tuple[Session, ...]
    warning: str | None = None


def choose_window(stored: Sequence[Session], policy: Policy) -> Window:
    """The newest sessions of one level, at most `WINDOW`."""
    ordered = sorted(stored, key=lambda session: (session.recorded_at, session.session_id))[-WINDOW:]
    side = Side.of(ordered)
    for split in range(len(ordered) - LEAST, LEAST - 1, -1):
        change = _change_at(side, split, policy)
        if change is not None:
            return Window(tuple(ordered[split:]), f"judged by the newest {len(ordered) - split} sessions: {change}")
    return Window(tuple(ordered))


def _change_at(side: Side, split: int, policy: Policy) -> str | None:
    """A clause where some metric has another level from session ``split`` on: apart by more than its tolerance, and
    every newer session beyond every older one."""
    for workload, metric in side.by_key:
        facts = policy.facts(metric)
        if facts is None or policy.is_sentinel(workload):
            continue
        levels = side.levels((workload, metric))
        old = [value for index, value in levels.items() if index < split]
        new = [value for index, value in levels.items() if index >= split]
        if len(old) < LEAST or len(new) < LEAST:
            continue
        shift = math.log(statistics.median(new) / statistics.median(old))
        apart = max(new) < min(old) or min(new) > max(old)
        tolerance = policy.applied(workload, metric, facts.phase).effective_tolerance(statistics.median(old))
        if apart and abs(shift) > math.log1p(tolerance):
            size = format_percent(math.expm1(shift), signed=True)
            return f"{split} older ones stand at another level ({workload} {metric} changed by {size})"
    return None
