"""What the client observed about itself while it measured. A late client must not look like a slow server."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from phasegate.core.units import format_percent, format_seconds

TICK = 0.020
"""Seconds between two looks at the event loop: finer than any latency worth gating, too rare to cost anything
(a timer callback of a few microseconds)."""


LAG_LIMIT = 0.010
"""Event-loop lag in seconds (p99) from which read moments cannot be trusted: a fifth of a 50 ms token gap."""

STAMPED_LAG_LIMIT = 0.050
"""The same where the kernel stamps the reads: then only sends are late, and a closed loop is slower to refill."""

CPU_LIMIT = 0.9
"""Share of a core from which the single-threaded client is the bottleneck."""

CPU_SECONDS_WORTH_SAYING = 0.5
"""A window of a few milliseconds is all sending and receiving, and its share of a core says nothing."""


@dataclass(frozen=True, slots=True)
class ClientHealth:
    """How well the measuring process kept up. All times in seconds.

    Attributes:
        loop_lag_p99, loop_lag_max: how late a 20 ms ticker in the event loop was called. Sends and, without
            kernel stamps, read moments are late by up to this.
        cpu_seconds: CPU time of this process in the window.
        cpu_share: the same over elapsed time; near 1.0 the client is the bottleneck.
        gc_pauses: number of garbage collections inside the window (0 unless something forced one).
        gc_pause_max: the longest of them.
        reads_stamped: reads whose moment came from the kernel; their moments are right even when the loop lags.
        read_wait_mean, read_wait_max: how long such reads waited before they were fetched.
    """

    loop_lag_p99: float
    loop_lag_max: float
    cpu_seconds: float
    cpu_share: float
    gc_pauses: int
    gc_pause_max: float
    reads_stamped: int
    read_wait_mean: float
    read_wait_max: float

    @property
    def late(self) -> bool:
        """Whether the event loop ran so late that moments are in doubt."""
        return self.loop_lag_p99 > (STAMPED_LAG_LIMIT if self.reads_stamped > 0 else LAG_LIMIT)

    @property
    def busy(self) -> bool:
        """Whether the client used up its core."""
        return self.cpu_share > CPU_LIMIT and self.cpu_seconds > CPU_SECONDS_WORTH_SAYING

    @property
    def at_its_limit(self) -> bool:
        """Whether more workers could help."""
        return self.late or self.busy

    def warnings(self) -> tuple[str, ...]:
        """What makes this run's moments doubtful, each in one sentence with its remedy; empty when nothing does."""
        found = []
        if self.late:
            late = "requests were sent late" if self.reads_stamped > 0 else "tokens were stamped late"
            found.append(
                f"the client's event loop ran {format_seconds(self.loop_lag_p99)} late (p99), so {late}; "
                "give the client a core of its own or lower the concurrency"
            )
        if self.busy:
            found.append(
                f"the client used {format_percent(self.cpu_share, digits=0)} of a core, so it may be the bottleneck; "
                "lower the concurrency"
            )
        if self.gc_pauses:
            found.append(
                f"{self.gc_pauses} garbage collections stopped the client, for {format_seconds(self.gc_pause_max)} at "
                "most; force none while it measures"
            )
        return tuple(found)


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """How one of several workers did.

    Attributes:
        number: from 1.
        host: name of its machine.
        requests: its share.
        unreported: those of them that were lost with it; 0 for a worker that lived.
        lost: how it died, or None.
        health: what it saw of itself; None where it died.
    """

    number: int
    host: str
    requests: int
    unreported: int
    lost: str | None
    health: ClientHealth | None


class Watch:
    """Observes the running event loop between `begin` and `end`."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._pauses: list[float] = []
        self._pause_began = 0.0
        self._ticker: asyncio.TimerHandle | None = None
        self._began = self._cpu = 0.0

    def begin(self) -> None:
        """Start looking."""
        self._began, self._cpu = monotonic(), time.process_time()
        self._wait_from(self._began)
        gc.callbacks.append(self._collected)

    def end(self, read_lag: tuple[int, float, float]) -> ClientHealth:
        """Stop looking and say what was seen. ``read_lag`` is the client's own."""
        if self._ticker is not None:
            self._ticker.cancel()
            gc.callbacks.remove(self._collected)
        elapsed = max(monotonic() - self._began, 1e-9)
        spent = time.process_time() - self._cpu
        reads, mean, longest = read_lag
        return ClientHealth(
            loop_lag_p99=_nearest_rank(self._lags, 0.99),
            loop_lag_max=max(self._lags, default=0.0),
            cpu_seconds=spent,
            cpu_share=spent / elapsed,
            gc_pauses=len(self._pauses),
            gc_pause_max=max(self._pauses, default=0.0),
            reads_stamped=reads,
            read_wait_mean=mean,
            read_wait_max=longest,
        )

    def _tick(self, due: float) -> None:
        now = monotonic()
        self._lags.append(max(now - due, 0.0))
        self._wait_from(now)

    def _wait_from(self, now: float) -> None:
        loop = asyncio.get_running_loop()
        self._ticker = loop.call_later(TICK, self._tick, now + TICK)

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._pause_began = monotonic()
        else:
            self._pauses.append(monotonic() - self._pause_began)


def _nearest_rank(values: list[float], fraction: float) -> float:
    if not values:
        return 0.0
    return sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect now, set what survives aside, and collect no more until the block is left.

    A full collection of a test process with numpy and pytest in it stops every stream for tens of
    milliseconds. Restores what it found, also when the block raises. Inside another such block it does nothing, so
    that many short runs in a row can share one collection.
    """
    was_enabled = gc.isenabled()
    if not was_enabled and gc.get_freeze_count() > 0:
        yield
        return
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
