"""How many requests each level of load gets: enough for what is to be proven, in whole waves, and no more.

Levels are measured in rounds and take turns within a round. A wave is as many requests as the level has users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS = 5
"""Rounds of a sitting: fewer than 5 cannot show their own spread (`stats.blocks.MIN_BLOCKS`)."""

MOST_FOR_OBJECTIVES = 60
"""Requests of one level that objectives may ask for by themselves: 59 without a miss prove a p95. Those of p99 (299)
would take minutes on a small engine, so they are sent only where the user says so."""


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """Requests of one level.

    Attributes:
        level: requests in flight.
        rounds: how often the level is visited.
        per_round: requests in each visit.
    """

    level: int
    rounds: int
    per_round: int

    @property
    def requests(self) -> int:
        """Requests in all."""
        return self.rounds * self.per_round


def plan_levels(
    levels: Sequence[int], requests: int, *, to_prove: int = 0, fixed: int | None = None
) -> tuple[LevelPlan, ...]:
    """The plan for some levels.

    Args:
        levels: requests in flight, each at least 1.
        requests: of each level where nothing else is said.
        to_prove: requests without a miss that the strictest objective needs; 0 without objectives.
        fixed: requests of each level as the user wants them, or None.
    """
    wanted = fixed if fixed is not None else requests_wanted(requests, to_prove)
    return tuple(LevelPlan(level, ROUNDS, _per_round(level, wanted)) for level in levels)


def requests_wanted(requests: int, to_prove: int) -> int:
    """Requests of a level: what the workload says, or what objectives need where that is more and affordable."""
    return max(requests, min(to_prove, MOST_FOR_OBJECTIVES))


def _per_round(level: int, wanted: int) -> int:
    """At least one wave a round, and two waves where the level is small: a single wave never replaces a request."""
    share = math.ceil(wanted / ROUNDS)
    return max(level * 2 if 1 < level <= TWO_WAVES_UP_TO else level, share)


TWO_WAVES_UP_TO = 4
"""Levels that get two waves a round by themselves; those above get enough requests from one."""
