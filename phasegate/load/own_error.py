"""The client's own error, measured: the same client, at the tested concurrency, against a server of known timing.

The simulator answers in a process of its own and logs when each request had been read and when each chunk left, on the
machine's one monotonic clock. What the client saw on top of that is its error. The simulator's own lateness in reading
requests counts as the client's, so the figures are upper bounds; on a machine without a core for it they grow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.truth import Truth
from phasegate.load.closed import run_closed
from phasegate.load.request import Request
from phasegate.load.target import Target
from phasegate.stats.percentile import nearest_rank
from phasegate.timeline import Timeline
from phasegate.units import format_percent, format_seconds
from phasegate.wire.openai_stream import decode

PACE = 50.0
"""Tokens a second of each stream: that of a chat that is read along."""

MOST_CHUNKS = 10_000.0
"""Chunks a second that the simulator is asked for; with more streams each gets a slower pace."""

TOKENS = 16
"""Tokens of each answer: 15 gaps for TPOT, a third of a second a wave at full pace."""

LEAST_REQUESTS = 32
"""Requests of one measurement at low concurrency, so that a p99 is not the only value."""

MATERIAL = 0.25
"""Share of a tolerance that the client's own error may take: what is left judges the server."""

_NUMBER = re.compile(rb'"id":\s*"chatcmpl-\d+-\d+-(\d+)"')


@dataclass(frozen=True, slots=True)
class OwnError:
    """The error of this client on this machine.

    Attributes:
        concurrency: requests in flight.
        requests: requests measured.
        lost: requests that did not come back whole.
        ttft_p50, ttft_p99: seconds by which TTFT came out too long.
        tpot_p50: absolute error of TPOT as a fraction.
    """

    concurrency: int
    requests: int
    lost: int
    ttft_p50: float
    ttft_p99: float
    tpot_p50: float

    def as_json(self) -> dict[str, Any]:
        """Plain values, to be stored beside results."""
        return asdict(self)

    def problem(self, *, ttft_tolerance: float | None = None, tpot_tolerance: float | None = None) -> str | None:
        """Why this client cannot judge with these tolerances, in one line with the remedy; None where it can.

        Args:
            ttft_tolerance: seconds by which a TTFT may differ before it matters; None where none is judged.
            tpot_tolerance: fraction by which a TPOT may; None where none is judged.
        """
        share = format_percent(MATERIAL, digits=0)
        remedy = "give the client a core of its own, lower the concurrency, or widen the tolerance"
        if self.lost:
            return f"{self.lost} of {self.requests} requests at a server of known timing were lost; {remedy}"
        if ttft_tolerance is not None and self.ttft_p50 > MATERIAL * ttft_tolerance:
            return (
                f"the client itself adds {format_seconds(self.ttft_p50)} to TTFT at {self.concurrency} at a time, "
                f"more than {share} of the tolerance {format_seconds(ttft_tolerance)}; {remedy}"
            )
        if tpot_tolerance is not None and self.tpot_p50 > MATERIAL * tpot_tolerance:
            return (
                f"the client itself moves TPOT by {format_percent(self.tpot_p50)} at {self.concurrency} at a time, "
                f"more than {share} of the tolerance {format_percent(tpot_tolerance)}; {remedy}"
            )
        return None


def measure_own_error(concurrency: int, *, requests: int | None = None) -> OwnError:
    """Run this client against the simulator at that concurrency and compare with the simulator's log.

    Takes a second or two. ``requests`` defaults to one wave, or `LEAST_REQUESTS` where that is more.

    Raises:
        ValueError: the concurrency is below 1.
        EngineError: the simulator cannot be started.
    """
    count = requests if requests is not None else max(concurrency, LEAST_REQUESTS)
    pace = min(PACE, MOST_CHUNKS / max(concurrency, 1))
    # Prefill costs next to nothing, so the first token comes one step after the request.
    config = SimulatorConfig(batching=Batching.ALONE, step_seconds=1 / pace, prefill_tokens_per_second=1e6)
    body = {"messages": [{"role": "user", "content": "what is the time"}], "max_tokens": TOKENS}
    with SimulatorEngine(config) as engine:
        sent = [Request(f"r{number}", "chat", body) for number in range(count)]
        result = run_closed(Target(engine.base_url, "simulated"), sent, max_concurrency=concurrency)
        truths = {truth.number: truth for truth in engine.truths()}
    pairs = []
    for recording in result.recordings:
        found = _NUMBER.search(b"".join(read.data for read in recording.reads[:2]))
        truth = truths.get(int(found.group(1))) if found else None
        line = decode(recording)
        if truth is not None and line.status == "ok" and len(line.tokens) == len(truth.chunks):
            pairs.append((line, truth))
    return own_error_of(concurrency, count, pairs)


def own_error_of(concurrency: int, requests: int, pairs: Sequence[tuple[Timeline, Truth]]) -> OwnError:
    """The errors of requests seen from both ends; what is missing in ``pairs`` counts as lost."""
    ttft, tpot = [], []
    for line, truth in pairs:
        left = [chunk.actual for chunk in truth.chunks if chunk.actual is not None]
        seen = [event.at for event in line.tokens]
        assert line.sent is not None
        ttft.append((seen[0] - line.sent) - (left[0] - truth.arrived))
        tpot.append(abs((seen[-1] - seen[0]) / (left[-1] - left[0]) - 1))
    lost = requests - len(pairs)
    return OwnError(
        concurrency=concurrency,
        requests=requests,
        lost=lost,
        ttft_p50=nearest_rank(ttft, 50, failed=lost),
        ttft_p99=nearest_rank(ttft, 99, failed=lost),
        tpot_p50=float(np.median(tpot)) if tpot else float("inf"),
    )
