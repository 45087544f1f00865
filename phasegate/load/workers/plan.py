"""The division of a load over workers: pure arithmetic, without a clock.

Concurrency is divided so that the shares add up to exactly what was asked for. A closed loop's requests follow its
places (user ``n`` of ``C`` sends the requests ``n``, ``n + C``, ...), so that each worker's list lasts as long as any
other's. A schedule is dealt out like cards in the order of its due moments: every request keeps its own moment, and a
burst falls on all workers alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker is to do.

    Attributes:
        places: of its requests in the whole list, rising, never empty.
        max_concurrency: requests that it may have in flight; None without a cap.
    """

    places: tuple[int, ...]
    max_concurrency: int | None


def divide_closed(count: int, concurrency: int, workers: int) -> tuple[Share, ...]:
    """Shares of ``count`` requests in a closed loop of ``concurrency`` users, for at most ``workers`` workers.

    No more workers take part than there are users or requests; empty without requests.

    Raises:
        ValueError: fewer than one user or worker.
    """
    _at_least_one("concurrency", concurrency)
    pool = _pool(workers, count, concurrency)
    places: list[list[int]] = [[] for _ in range(pool)]
    for place in range(count):
        places[place % concurrency % pool].append(place)
    return _shares(places, parts(concurrency, pool))


def divide_open(offsets: Sequence[float], cap: int | None, workers: int) -> tuple[Share, ...]:
    """Shares of a schedule (seconds from the start, in any order), for at most ``workers`` workers.

    A cap on requests in flight is divided like concurrency; a request may then wait for a place in its own worker
    while another worker has one free.

    Raises:
        ValueError: a cap or a number of workers below one.
    """
    if cap is not None:
        _at_least_one("concurrency", cap)
    pool = _pool(workers, len(offsets), cap)
    places: list[list[int]] = [[] for _ in range(pool)]
    for turn, place in enumerate(sorted(range(len(offsets)), key=offsets.__getitem__)):
        places[turn % pool].append(place)
    return _shares(places, [None] * pool if cap is None else parts(cap, pool))


def parts(whole: int, count: int) -> list[int]:
    """``whole`` in ``count`` parts that differ by at most one, larger ones first; their sum is exactly ``whole``."""
    return [whole // count + (number < whole % count) for number in range(count)]


def _pool(workers: int, *limits: int | None) -> int:
    _at_least_one("number of workers", workers)
    return min(workers, *(limit for limit in limits if limit is not None))


def _shares(places: Sequence[Sequence[int]], caps: Sequence[int | None]) -> tuple[Share, ...]:
    return tuple(Share(tuple(sorted(own)), cap) for own, cap in zip(places, caps, strict=True))


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} {value} is not possible; use 1 or more")
