"""How much processor time a verdict costs: ``python -m benchmarks.compare_speed``.

20 comparisons (TTFT and TPOT of ten workloads) with 400 requests each, 5 candidate sessions, baselines of 20 and of 500
sessions; once from memory and once from session files, as ``phasegate compare`` reads them. Noise is drawn with a seed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from phasegate.core.session import Measurement, Session
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.store.baseline_folder import read_folder
from phasegate.store.session_file import session_text

WORKLOADS, REQUESTS, CANDIDATES, SEED = 10, 400, 5, 1
METRICS = (("ttft", "prefill", 0.3), ("tpot", "decode", 0.008))


def drawn(count: int, rng: np.random.Generator, first: int) -> list[Session]:
    """Sessions of an unchanged server."""
    return [_session(first + number, rng) for number in range(count)]


def _session(number: int, rng: np.random.Generator) -> Session:
    measurements = []
    for workload in range(WORKLOADS):
        for metric, phase, level in METRICS:
            values = level * np.exp(rng.normal(0, 0.01) + rng.normal(0, 0.02, REQUESTS))
            measurements.append(
                Measurement(f"w{workload}", metric, tuple(values.tolist()), phase, "d", "usage", REQUESTS)
            )
    moment = f"2026-01-{1 + number // 1440 % 28:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00+00:00"
    return Session(f"s{number:05d}", moment, tuple(measurements), {"engine": "drawn", "hardware": "none"}, {}, "f", "h")


def processor_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process for one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure and print."""
    rng, policy = np.random.default_rng(SEED), Policy()
    print(f"20 comparisons x {REQUESTS} requests, {CANDIDATES} candidate sessions, seed {SEED}; CPU seconds")
    print("| baseline sessions | judge | read files and judge |")
    print("|---|---|---|")
    for count in (20, 500):
        baseline, candidate = drawn(count, rng, 0), drawn(CANDIDATES, rng, count)
        judged = processor_seconds(lambda: judge(baseline, candidate, policy))  # noqa: B023 - called at once
        with tempfile.TemporaryDirectory() as folder:
            for session in baseline:
                (Path(folder) / f"{session.session_id}.json").write_text(session_text(session), encoding="utf-8")
            both = processor_seconds(lambda: judge(read_folder(Path(folder)), candidate, policy))  # noqa: B023
        print(f"| {count} | {judged:.2f} | {both:.2f} |")


if __name__ == "__main__":
    main()
