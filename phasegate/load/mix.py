"""Mixed workloads: several kinds of request in one load, by weight.

The shares are exact (as exact as whole requests allow) and only the order is drawn. Independent draws would let the
share itself vary from run to run, and with it the load and the percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from phasegate.workload import Planned, Workload, plan_blocks


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
    workloads: Sequence[tuple[Workload, float]], count: int, rng: np.random.Generator
) -> list[tuple[Workload, Planned]]:
    """``count`` planned requests of several workloads by weight, each with the workload it belongs to.

    Every workload's own requests come in the order of its own plan, so its cells are visited evenly.

    Raises:
        ValueError: a weight that is not possible, or two workloads of one name.
    """
    weights = {workload.name: weight for workload, weight in workloads}
    if len(weights) < len(workloads):
        raise ValueError("a mix names each workload once; add up the weights of the one that comes twice")
    order = mixed(weights, count, rng)
    by_name = {workload.name: workload for workload, _ in workloads}
    plans = {name: iter(plan_of(by_name[name], order.count(name), rng)) for name in by_name}
    return [(by_name[name], next(plans[name])) for name in order]


def plan_of(workload: Workload, count: int, rng: np.random.Generator) -> list[Planned]:
    """Exactly ``count`` requests of one workload: as many whole blocks as that takes, the last one cut off."""
    blocks = math.ceil(count / len(workload.cells))
    return plan_blocks(workload.with_requests(blocks), rng)[:count]
