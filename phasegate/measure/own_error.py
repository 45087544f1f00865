"""The client's own error, measured: the same client, at the tested concurrency, against a server of known timing.

The simulator answers in a process of its own and logs when each request had been read and when each chunk left, on the
machine's one monotonic clock. What the client saw on top of that is its error. The simulator's own lateness in reading
requests counts as the client's, so the figures are upper bounds; on a machine without a core for it they grow.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Timeline
from phasegate.engines.base import EngineError
from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.process import SimulatorProcess
from phasegate.engines.simulator.truth import Truth, read_log
from phasegate.load.closed import run_closed
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.health import no_garbage_collection
from phasegate.stats.client_error import OwnError
from phasegate.stats.percentile import nearest_rank
from phasegate.wire.openai_stream import decode

__all__ = ["Calibrations", "OwnError", "measure_own_error", "own_error_of"]

PACE = 100.0
"""Tokens a second of each stream: that of a quick chat."""

MOST_CHUNKS = 10_000.0
"""Chunks a second that the simulator is asked for; with more streams each gets a slower pace."""

TOKENS = 8
"""Tokens of each answer: 7 gaps for TPOT, a tenth of a second a wave at full pace."""

WAVES = 2
"""Waves of requests: in the second one requests go out while other answers come."""

LEAST_REQUESTS = 12
"""Requests of one measurement at low concurrency: a second for one user, and a median that no single one moves."""

_NUMBER = re.compile(rb'"id":\s*"chatcmpl-\d+-\d+-(\d+)"')

Drive = Callable[..., LoadResult]
"""What sends a closed loop: `run_closed`, or the same over several processes."""

Watcher = Callable[[int, Sequence[Request]], OnDone | None]
"""Makes what is called at the end of each request, from the concurrency and the requests; it is part of the client."""


@dataclass
class Calibrations:
    """What is known of this run's client: each concurrency is measured once for each set-up of processes.

    Attributes:
        known: set-up and concurrency -> the error.
        failed: why the client could not be calibrated, or None.
    """

    known: dict[tuple[str, int], OwnError] = field(default_factory=dict)
    failed: str | None = None

    def measure(
        self,
        levels: Iterable[int],
        *,
        setup: str = "",
        drive: Drive = run_closed,
        watcher: Watcher | None = None,
        transport: str = "auto",
    ) -> None:
        """Measure the levels that are not known yet; the tested server should be idle meanwhile.

        Args:
            levels: requests in flight, each at least 1.
            setup: a name for the processes that send; errors of one set-up say nothing of another.
            drive: what sends.
            watcher: what the run calls at the end of each request, if anything.
            transport: of the tested target.
        """
        missing = [level for level in sorted(set(levels)) if (setup, level) not in self.known]
        if not missing:
            return
        try:
            found = _measure_levels(missing, drive=drive, watcher=watcher, transport=transport)
        except (EngineError, OSError, ValueError) as error:
            self.failed = str(error)
            return
        self.known.update({(setup, level): one for level, one in found.items()})

    def at(self, level: int, *, setup: str = "") -> OwnError | None:
        """The error at that concurrency; None where it was not measured."""
        return self.known.get((setup, level))

    def as_json(self) -> list[dict[str, object]]:
        """Plain values, one entry for each concurrency and set-up, to be stored beside results."""
        return [{**one.as_json(), "setup": setup or "one process"} for (setup, _), one in sorted(self.known.items())]


def measure_own_error(concurrency: int, *, requests: int | None = None) -> OwnError:
    """Run this client against the simulator at that concurrency and compare with the simulator's log.

    Takes a second or so. ``requests`` defaults to two waves, or `LEAST_REQUESTS` where that is more.

    Raises:
        ValueError: the concurrency is below 1.
        EngineError: the simulator cannot be started.
    """
    return _measure_levels([concurrency], requests=requests)[concurrency]


def _measure_levels(
    levels: Sequence[int],
    *,
    requests: int | None = None,
    drive: Drive = run_closed,
    watcher: Watcher | None = None,
    transport: str = "auto",
) -> dict[int, OwnError]:
    """All levels at one simulator, which takes longer to start than to answer."""
    pace = min(PACE, MOST_CHUNKS / max(*levels, 1))
    # Prefill costs next to nothing, so the first token comes one step after the request.
    config = SimulatorConfig(batching=Batching.ALONE, step_seconds=1 / pace, prefill_tokens_per_second=1e6)
    process = SimulatorProcess(config)
    try:
        _keep_off_the_client(process.pid)
        target = Target(f"{process.address}/v1", "simulated", transport=transport, timeout=30.0, idle_timeout=10.0)
        found = {}
        with no_garbage_collection():  # once for all levels
            for level in levels:
                sent = _requests(requests if requests is not None else max(WAVES * level, LEAST_REQUESTS))
                told = watcher(level, sent) if watcher is not None else None
                result = drive(target, sent, max_concurrency=level, on_done=told)
                if result.interrupted:
                    raise KeyboardInterrupt
                truths = read_log(process.ask("/log"))
                process.ask("/log/reset", {})
                found[level] = own_error_of(level, len(sent), _pairs(result, truths))
        return found
    finally:
        process.stop()


def _requests(count: int) -> list[Request]:
    body = {"messages": [{"role": "user", "content": "what is the time"}], "max_tokens": TOKENS}
    return [Request(f"r{number}", "chat", body) for number in range(count)]


def _keep_off_the_client(pid: int) -> None:
    """Give the simulator the cores that the client does not use, where there are any: those of the idle engine."""
    if not hasattr(os, "sched_setaffinity"):
        return
    others = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
    if others:
        with contextlib.suppress(OSError):  # cores that this machine does not give us: it runs where it was started
            os.sched_setaffinity(pid, others)


def _pairs(result: LoadResult, truths: Sequence[Truth]) -> list[tuple[Timeline, Truth]]:
    """The whole answers, each from both ends."""
    by_number = {truth.number: truth for truth in truths}
    pairs = []
    for recording in result.recordings:
        found = _NUMBER.search(b"".join(read.data for read in recording.reads[:2]))
        truth = by_number.get(int(found.group(1))) if found else None
        line = decode(recording)
        if truth is not None and line.status == "ok" and len(line.tokens) == len(truth.chunks):
            pairs.append((line, truth))
    return pairs


def own_error_of(concurrency: int, requests: int, pairs: Sequence[tuple[Timeline, Truth]]) -> OwnError:
    """The errors of requests seen from both ends; what is missing in ``pairs`` counts as lost."""
    ttft, tpot, spans = [], [], []
    for line, truth in pairs:
        left = [chunk.actual for chunk in truth.chunks if chunk.actual is not None]
        seen = [event.at for event in line.tokens]
        assert line.sent is not None
        ttft.append((seen[0] - line.sent) - (left[0] - truth.arrived))
        tpot.append(abs((seen[-1] - seen[0]) / (left[-1] - left[0]) - 1))
        spans.append(abs((seen[-1] - seen[0]) - (left[-1] - left[0])))
    lost = requests - len(pairs)
    return OwnError(
        concurrency=concurrency,
        requests=requests,
        lost=lost,
        ttft_p50=nearest_rank(ttft, 50, failed=lost),
        ttft_p99=nearest_rank(ttft, 99, failed=lost),
        tpot_p50=float(np.median(tpot)) if tpot else float("inf"),
        span_p50=float(np.median(spans)) if spans else float("inf"),
    )
