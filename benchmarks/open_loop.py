"""How well the open loop keeps its schedule, and what a pause of the server looks like from both ends.

    python -m benchmarks.open_loop

The server is the simulator with ``batching=alone`` in a process of its own, so that nobody waits for anybody. Each rate
is driven ``--runs`` times with Poisson arrivals; medians over the runs are printed, with the worst run beside them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import numpy as np

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.load.driving import LoadResult
from phasegate.load.load_check import load_problem
from phasegate.load.open_loop import run_open
from phasegate.load.pacing import Rate, poisson
from phasegate.load.shapes import Shape
from phasegate.stats.percentile import nearest_rank
from phasegate.wire.openai_stream import decode

RATES = (10.0, 50.0, 100.0)

SECONDS = 4.0
"""Length of one run: long enough for one hiccup of the machine to be less than 2 % of it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    args = parser.parse_args(argv)
    print("asked  sent of due: median  worst   after due: p50     p99 (median of runs)  runs that reached their load")
    with SimulatorEngine(SimulatorConfig.from_words("batching=alone speed=4")) as engine:
        for rate in RATES:
            print(_row(rate, [_run(engine.base_url, rate, seed) for seed in range(args.runs)]))
    print()
    print("a pause of one second at 20 requests/s, at most 1 at a time, 60 requests (request latency, seconds)")
    for name, row in _pause().items():
        print(f"  {name:14s} p50 {row[0]:.3f}  p90 {row[1]:.3f}  max {row[2]:.3f}")
    return 0


def _run(base_url: str, rate: float, seed: int) -> LoadResult:
    offsets = poisson(Rate.constant(rate), int(rate * SECONDS), np.random.default_rng(seed))
    return run_open(Target(base_url, "simulated"), [(at, _request(n, 16)) for n, at in enumerate(offsets)])


def _request(number: int, tokens: int) -> Request:
    body = {"messages": [{"role": "user", "content": "one two three four"}], "max_tokens": tokens}
    return Request(f"r{number}", "chat", body)


def _row(rate: float, results: Sequence[LoadResult]) -> str:
    ratios = [(result.achieved_rate or 0.0) / (result.requested_rate or 1.0) for result in results]
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    p50, p99 = (
        statistics.median(nearest_rank(sorted(result.schedule_delays), percent) for result in results)
        for percent in (50, 99)
    )
    asked = Shape(rate=Rate.constant(rate))
    reached = sum(load_problem(result, asked) is None for result in results)
    return (
        f"{rate:5g}  {100 * statistics.median(ratios):18.2f} % {100 * worst:6.2f} %"
        f"  {1e3 * p50:13.2f} ms {1e3 * p99:5.2f} ms  {reached:18d} of {len(results)}"
    )


def _pause() -> dict[str, tuple[float, float, float]]:
    """p50, p90 and maximum of request latency from due and from sent, around one pause of the server."""
    with SimulatorEngine(SimulatorConfig.from_words("batching=alone pause_at_token=6 pause_seconds=1")) as engine:
        # Only the one long answer reaches the token at which this server pauses.
        schedule = [(n / 20, _request(n, 8 if n == 10 else 2)) for n in range(60)]
        result = run_open(Target(engine.base_url, "simulated"), schedule, max_concurrency=1)
    rows = {}
    for name, metric in (("counted from due", "e2el_from_due"), ("from sent", "e2el")):
        measured = [metric_named(metric).measure(decode(recording)) for recording in result.recordings]
        values = sorted(value for value in measured if not isinstance(value, Undefined))
        rows[name] = (nearest_rank(values, 50), nearest_rank(values, 90), values[-1])
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
