"""Mixed workloads: several kinds of request in one load, by weight.

The shares are exact (as exact as whole requests allow) and only the order is drawn. Independent draws would let the
share itself vary from run to run, and with it the load and the percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.core.workload import Planned, Workload, plan_blocks


@dataclass(frozen=True, slots=True)
class Mix:
    """Several workloads in one load.

    Attributes:
        parts: each workload with its weight, above 0.
    """

    parts: tuple[tuple[Workload, float], ...]

    @property
    def name(self) -> str:
        """The mix as it is written in the option."""
        return " ".join(f"{workload.name}={weight:g}" for workload, weight in self.parts)

    @property
    def requests(self) -> int:
        """Requests where nobody says how many: those of all its workloads together."""
        return sum(workload.requests for workload, _ in self.parts)

    @property
    def warmups(self) -> int:
        """The same for warm-ups."""
        return sum(workload.warmups for workload, _ in self.parts)


def parse_mix(text: str, *, source: str) -> dict[str, float]:
    """Workload -> weight, as ``chat=3 report=1`` says; a name without a weight has 1.

    Raises:
        ValueError: one line naming the word, its source and what would be right.
    """
    weights: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, sign, given = word.partition("=")
        weight = _weight(given) if sign else 1.0
        if not name or not 0 < weight < math.inf:
            raise ValueError(f"{source}: {word!r} is not a workload with a weight above 0; write chat=3 report=1")
        if name in weights:
            raise ValueError(f"{source}: {name!r} comes twice; add up its weights")
        weights[name] = weight
    if not weights:
        raise ValueError(f"{source} names no workload; write chat=3 report=1")
    return weights


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def quotas(weights: Sequence[float], count: int) -> tuple[int, ...]:
    """How many of ``count`` each weight gets: proportional, rounded by largest remainder, in the order given.

    Raises:
        ValueError: a weight is not a finite number of at least 0, or all are 0.
    """
    for weight in weights:
        if not 0 <= weight < math.inf:
            raise ValueError(f"a weight of {weight:g} is not possible; use a number of at least 0")
    total = sum(weights)
    if not total > 0:
        raise ValueError("a mix needs a weight above 0")
    exact = [count * weight / total for weight in weights]
    whole = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: whole[place] - exact[place])
    for place in by_remainder[: count - sum(whole)]:
        whole[place] += 1
    return tuple(whole)


def mixed(weights: Mapping[str, float], count: int, rng: np.random.Generator) -> tuple[str, ...]:
    """``count`` names in an order drawn by ``rng``, each as often as its weight says (`quotas`).

    Raises:
        ValueError: a weight that is not possible; see `quotas`.
    """
    names = [name for name, n in zip(weights, quotas(tuple(weights.values()), count), strict=True) for _ in range(n)]
    return tuple(names[int(place)] for place in rng.permutation(len(names)))


def plan_mixed(
    workloads: Sequence[tuple[Workload, float]], count: int, rng: np.random.Generator, first_block: int = 0
) -> list[tuple[Workload, Planned]]:
    """``count`` planned requests of several workloads by weight, each with the workload it belongs to.

    Every workload's own requests come in the order of its own plan, so its cells are visited evenly. ``first_block``
    numbers their blocks on, so that a later plan has new prompts.

    Raises:
        ValueError: a weight that is not possible, or two workloads of one name.
    """
    weights = {workload.name: weight for workload, weight in workloads}
    if len(weights) < len(workloads):
        raise ValueError("a mix names each workload once; add up the weights of the one that comes twice")
    order = mixed(weights, count, rng)
    by_name = {workload.name: workload for workload, _ in workloads}
    plans = {name: iter(plan_of(by_name[name], order.count(name), rng, first_block)) for name in by_name}
    return [(by_name[name], next(plans[name])) for name in order]


def plan_of(workload: Workload, count: int, rng: np.random.Generator, first_block: int = 0) -> list[Planned]:
    """Exactly ``count`` requests of one workload: as many whole blocks as that takes, the last one cut off."""
    blocks = math.ceil(count / len(workload.cells))
    return plan_blocks(workload.with_requests(blocks), rng, first_block)[:count]
