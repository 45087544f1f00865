"""Driving a load of any shape: one call, whatever the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.load.closed import run_closed
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.open_loop import run_open
from phasegate.load.shapes import Shape


def run_shape(
    target: Target,
    requests: Sequence[Request],
    shape: Shape,
    rng: np.random.Generator,
    *,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
) -> LoadResult:
    """Send the requests as the shape says: in a closed loop, or on the schedule that ``rng`` draws.

    Raises:
        ValueError, OSError, RuntimeError: as `run_closed` and `run_open`.
    """
    if not shape.is_open:
        return run_closed(target, requests, max_concurrency=shape.users, on_done=on_done, stop=stop)
    schedule = list(zip(shape.offsets(len(requests), rng), requests, strict=True))
    return run_open(target, schedule, max_concurrency=shape.max_concurrency, on_done=on_done, stop=stop)
