"""The child process that measures a processor: float32 operations a second, and bytes a second that it reads.

``python -m phasegate.engines.hardware_probe CORES``, cores as ``0,1`` or empty for all. The caller limits the threads
of BLAS by the environment. Prints ``{"f32": ..., "read": ...}``. Reading is what decode does with its weights; a copy
would count every byte twice and be held up by the writing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from time import perf_counter

import numpy as np

SIDE = 1024
"""Of the square matrices: 12 MB, so that the product is arithmetic and not reading."""

NUMBERS = 64 << 20
"""Of the array that is read: 256 MiB, larger than common caches."""

SECONDS = 0.4
"""Spent on each kind of work; the best run counts, since a neighbour can only make it slower."""


def main() -> int:
    """Measure and print."""
    cores = [int(core) for core in sys.argv[1].split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    matrix = np.linspace(0, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    product = np.empty_like(matrix)
    flops = 2 * SIDE**3 / best(lambda: np.matmul(matrix, matrix, out=product))
    vector = np.ones(NUMBERS, dtype=np.float32)
    table, factor = vector.reshape(-1, 8192), np.ones(8192, dtype=np.float32)
    # A sum of squares and a matrix times a vector: which of both reads faster depends on the library's kernels.
    fastest = min(best(lambda: np.dot(vector, vector)), best(lambda: table @ factor))
    print(json.dumps({"f32": flops, "read": vector.nbytes / fastest}))
    return 0


def best(work: Callable[[], object], seconds: float = SECONDS) -> float:
    """Shortest time of some work within a span of trying, in seconds; at least three tries."""
    until = perf_counter() + seconds
    times: list[float] = []
    while len(times) < 3 or perf_counter() < until:
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
