"""Run by a started engine's own Python: operations a second of a matrix product in the format the engine computes in.

``PYTHON torch_probe.py CORES THREADS FORMAT`` with cores as ``0,1`` or empty for all, and a format such as
``bfloat16``. Prints ``{"flops": ...}``. Numpy knows neither 16-bit arithmetic nor the library that the engine computes
with; PyTorch is that library. Imports nothing of this project, which is not installed there.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from time import perf_counter
from typing import Any

SIDE = 1024
"""Of the square matrices: their product is arithmetic and not reading."""

SECONDS = 0.4
"""Spent on trying; the best run counts, since a neighbour can only make it slower."""


def main(words: list[str]) -> int:
    """Measure and print."""
    cores = [int(core) for core in words[0].split(",") if core]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(int(words[1]))
    dtype = getattr(torch, words[2])
    with torch.inference_mode():
        inputs, weights = (torch.rand(SIDE, SIDE).to(dtype) for _ in range(2))
        # A linear layer, which is what models are made of: some formats are slow in any other product.
        torch.nn.functional.linear(inputs, weights)
        times: list[float] = []
        until = perf_counter() + SECONDS
        while not times or perf_counter() < until:
            start = perf_counter()
            torch.nn.functional.linear(inputs, weights)
            times.append(perf_counter() - start)
    print(json.dumps({"flops": 2 * SIDE**3 / min(times)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
