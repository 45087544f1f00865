"""A load as a value: what is sent, to whom, how many at a time or when. A worker's share of a load is one too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.load.closed import run_closed
from phasegate.load.driving import ControlChannel, LoadResult, OnDone
from phasegate.load.open_loop import run_open
from phasegate.load.shapes import Shape


@dataclass(frozen=True, slots=True)
class Job:
    """One load, or one worker's share of it. Holds the API key, which its repr does not show.

    Attributes:
        target: the server.
        requests: in the order in which recordings come back.
        max_concurrency: requests in flight at most; None for no cap, and in a closed loop for one.
        offsets: seconds from the start at which each request is due (open loop); None in a closed loop.
    """

    target: Target
    requests: tuple[Request, ...] = field(repr=False)
    max_concurrency: int | None
    offsets: tuple[float, ...] | None = None

    @property
    def users(self) -> int:
        """Requests in flight of a closed loop."""
        return 1 if self.max_concurrency is None else self.max_concurrency


def shaped(target: Target, requests: Sequence[Request], shape: Shape, rng: np.random.Generator) -> Job:
    """The load of a shape, with the schedule that ``rng`` draws; `shapes_run.run_shape` drives the same."""
    if not shape.is_open:
        return Job(target, tuple(requests), shape.users)
    return Job(target, tuple(requests), shape.max_concurrency, tuple(shape.offsets(len(requests), rng)))


def do(
    job: Job,
    *,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
    channel: ControlChannel | None = None,
) -> LoadResult:
    """Drive the load from this process; see `run_closed` and `run_open`."""
    if job.offsets is None:
        return run_closed(
            job.target, job.requests, max_concurrency=job.users, on_done=on_done, stop=stop, channel=channel
        )
    schedule = list(zip(job.offsets, job.requests, strict=True))
    return run_open(
        job.target, schedule, max_concurrency=job.max_concurrency, on_done=on_done, stop=stop, channel=channel
    )  # fmt: skip
