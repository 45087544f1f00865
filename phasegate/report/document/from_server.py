"""The server's own account in the document: the parts of TTFT that it tells for every cell, and what it counted."""

from __future__ import annotations

from collections.abc import Iterable

from phasegate.measure.server_metrics import ServerMetrics
from phasegate.report import run_words
from phasegate.report.document.model import ServerCounted
from phasegate.report.server_lines import ServerRow, server_rows
from phasegate.stats.counters import TIMES, ServerCounts
from phasegate.stats.workload_run import WorkloadRun


def server_timings_of(view: ServerMetrics, runs: Iterable[WorkloadRun]) -> dict[str, dict[str, float]] | None:
    """Cell -> part -> seconds (``TPOT`` and ``decode``: seconds a token); None where the server tells nothing."""
    rows = [row for run in sorted(runs, key=run_words.reading_order) if run.measured for row in server_rows(run, view)]
    return {row.label: _parts(row) for row in rows} or None


def _parts(row: ServerRow) -> dict[str, float]:
    """The parts that are known, in the order of the terminal's table."""
    split = row.split
    parts = {
        "TTFT": split.client,
        "server": split.server,
        "queue": split.queue,
        "prefill": split.prefill,
        "http": split.http,
        "tokenising": split.tokenising,
        "held back": split.first_decode,
        "unexplained": split.unexplained,
        "TPOT": row.tpot,
        "decode": row.decode,
        "hand-off": row.handoff,
    }
    return {name: value for name, value in parts.items() if value is not None}


def counted_of(counts: ServerCounts | None, requests: int, window: float = 0.0) -> ServerCounted | None:
    """What was counted, as the document keeps it; None where the server tells nothing of it.

    Args:
        counts: of one workload or level.
        requests: how many the client saw answered, for counters that do not say of how many they are the sum.
        window: seconds of a level of load; 0.0 for a workload, whose requests come one at a time.
    """
    if counts is None:
        return None
    means = {word: counts.mean(word, None if word == "handoff" else requests) for word in TIMES}
    moves, moved = counts.observed.get("handoff_bytes"), counts.grown.get("handoff_bytes")
    told = ServerCounted(
        seconds={word: mean for word, mean in means.items() if mean is not None},
        running=counts.mean_running(window),
        waiting=counts.mean_waiting(window),
        streams_per_step=counts.streams_per_step,
        cache_hit_rate=counts.cache_hit_rate,
        acceptance=counts.acceptance,
        preemptions=counts.grown.get("preemptions"),
        handoff_bytes=moved / moves if moved is not None and moves else None,
        reset=counts.reset,
    )
    return told if told != ServerCounted() else None
