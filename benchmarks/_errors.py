"""Errors of a run's requests against the server's log, as the few numbers that the table shows."""

from __future__ import annotations

import math
from collections.abc import Sequence


def summary(
    ttft: Sequence[float], tpot: Sequence[float], *, pace: Sequence[float], cpu: float, memory: float, lost: float
) -> dict[str, float]:
    """One run.

    Args:
        ttft: errors of TTFT, seconds.
        tpot: absolute relative errors of TPOT.
        pace: tokens a second at which the server really sent, by its own log.
        cpu: seconds for each token chunk.
        memory: bytes for each stream.
        lost: requests that did not come back whole.
    """
    return {
        "ttft_p50": percentile(ttft, 0.5),
        "ttft_p99": percentile(ttft, 0.99),
        "tpot_p50": percentile(tpot, 0.5),
        "tpot_p99": percentile(tpot, 0.99),
        "pace": percentile(pace, 0.5),
        "cpu": cpu,
        "memory": memory,
        "lost": lost,
    }


def percentile(values: Sequence[float], fraction: float) -> float:
    """Nearest rank; infinite when nothing was seen at all."""
    if not values:
        return math.inf
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]
