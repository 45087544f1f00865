"""The client's clock and the server's on the embedded engine: where a time to first token goes.

``python -m benchmarks.server_clock`` prints one row for each endpoint and prompt length: the client's TTFT, the
server's prefill, what HTTP and tokenising cost, how long a ready token was held back, and what nothing explains;
medians, in milliseconds, with the quartiles of the rest. The cores that other processes used meanwhile stand below.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Sequence

import numpy as np

from phasegate.core.identity import this_hardware
from phasegate.engines.cores import engine_cores
from phasegate.engines.host_probe import HostWatch
from phasegate.load.closed import run_closed
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.server_metrics import splits_of
from phasegate.measure.session_runner import SessionRunner
from phasegate.stats.first_token import FirstToken, median_split
from phasegate.wire.openai_stream import decode

LENGTHS = (64, 256, 1024, 2048)
OUTPUT = 32
PARTS = ("client", "prefill", "http", "tokenising", "first_decode", "unexplained")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=12, help="requests of each length (default 12)")
    given = parser.parse_args(argv)
    with connect(EngineOptions(base_url=None, seed=secrets.randbits(32))) as runner:
        watch = HostWatch(engine_cores())
        print("| endpoint | prompt | " + " | ".join((*PARTS, "its quartiles")).replace("_", " ") + " |")
        print("|---|---:|" + "---:|" * (len(PARTS) + 1))
        for endpoint in ("completions", "chat"):
            for length in LENGTHS:
                print(row(endpoint, length, measure(runner, endpoint, length, given.repeats)), flush=True)
        foreign = watch.report().foreign
    print(f"\nMachine: {this_hardware()}; other processes used {foreign:.2f} cores meanwhile.")


def measure(runner: SessionRunner, endpoint: str, length: int, repeats: int) -> list[FirstToken]:
    """The split of some cold requests."""
    requests = runner.fresh_requests(endpoint, length, OUTPUT, repeats, name=f"{endpoint}-{length}")
    lines = [decode(one) for one in run_closed(runner.target, requests, max_concurrency=1).recordings]
    runner.server_metrics.learn(runner, endpoint, lines)
    return splits_of(lines, runner.server_metrics.overheads[endpoint])


def row(endpoint: str, length: int, splits: Sequence[FirstToken]) -> str:
    """One row of the table."""
    middle = median_split(splits)
    assert middle is not None
    facts = {**middle.facts(), "unexplained": float(np.median(_rests(splits)))}
    values = [f"{(facts[name] or 0.0) * 1e3:.2f}" for name in PARTS]
    low, high = (f"{value * 1e3:.2f}" for value in np.quantile(_rests(splits), (0.25, 0.75)))
    return f"| {endpoint} | {length} | {' | '.join(values)} | {low} to {high} |"


def _rests(splits: Sequence[FirstToken]) -> list[float]:
    return [one.unexplained for one in splits if one.unexplained is not None]


if __name__ == "__main__":
    main()
