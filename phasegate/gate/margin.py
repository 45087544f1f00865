"""By how much a decided objective was decided: how far its limit would have to move for the verdict to change.

The verdict is a count of misses, so the margin is exact: the distance from the limit to the one request whose value
would have to change sides. The client's own error is held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phasegate.gate.slo import Objective
from phasegate.stats.intervals import proportion_interval

INFINITE = float("inf")


def breach_margin(objective: Objective, values: Sequence[float], failed: int, alpha: float) -> float:
    """Seconds by which the limit could be longer and the objective still surely be broken.

    Args:
        objective: one that is surely broken.
        values: of its metric, one per request that has one.
        failed: requests without a value, which no limit would help; infinity where they alone break it.
        alpha: error probability of the bound that decided.
    """
    sent, promised = len(values) + failed, 1 - objective.share
    needed = _first(sent, lambda hits: proportion_interval(hits, sent, alpha).low > promised)
    if needed <= failed:
        return INFINITE
    return sorted(values, reverse=True)[needed - failed - 1] - objective.limit


def pass_margin(objective: Objective, values: Sequence[float], failed: int, alpha: float) -> float:
    """Seconds by which the limit could be shorter and the objective still surely be kept; arguments as above."""
    sent, promised = len(values) + failed, 1 - objective.share
    too_many = _first(sent, lambda hits: proportion_interval(hits, sent, alpha).high > promised)
    ordered = sorted(values, reverse=True)
    # With as many misses as that it is not proven any more: the limit may come down to just above that value.
    place = too_many - failed - 1
    return objective.limit - ordered[place] if place < len(ordered) else objective.limit


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """The smallest of 0 to ``most`` for which a property holds that stays true once it is; ``most`` + 1 for none."""
    low, high = 0, most + 1
    while low < high:
        middle = (low + high) // 2
        if middle > most or holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
