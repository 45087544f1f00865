"""Which cores a started engine and the measuring client use: never the same ones, where there are enough.

The engine takes the first cores that this process was allowed to use when it started, the client the others. A core
that shares its execution units with one of the engine's (a hyper-thread) stays idle where others are left.
"""

from __future__ import annotations

import os
from pathlib import Path

_START = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def start_cores() -> list[int]:
    """The cores this process had when it started (the client narrows its own later); empty where nobody can pin."""
    return list(_START)


def engine_cores(threads: int = 1) -> list[int]:
    """The engine's cores, one for each thread; empty where that would leave none for the client."""
    return _engine(start_cores(), threads)


def client_cores(threads: int = 1) -> list[int]:
    """The client's cores, away from those of an engine with that many threads; empty where there is only one."""
    return _client(start_cores(), threads)


def _engine(allowed: list[int], threads: int) -> list[int]:
    return allowed[:threads] if len(allowed) > threads else []


def _client(allowed: list[int], threads: int) -> list[int]:
    # An engine that has no cores of its own roams over all; the client then keeps off the first, as for one thread.
    taken = _engine(allowed, threads) or allowed[:1]
    others = allowed[len(taken) :]
    shared = {sibling for core in taken for sibling in _siblings(core)} if others else set()
    return [core for core in others if core not in shared] or others


def _siblings(core: int) -> set[int]:
    """Cores that are the same physical one, itself included; empty where the system does not tell."""
    try:
        listed = Path(_TOPOLOGY.format(core)).read_text(encoding="ascii").strip()
        ranges = [part.split("-") for part in listed.split(",")]
        return {number for ends in ranges for number in range(int(ends[0]), int(ends[-1]) + 1)}
    except (OSError, ValueError):
        return set()
