"""Shapes of the generated model, measured: does TTFT rise with the prompt while TPOT stays where it is?

``python -m benchmarks.model_shapes`` prints one row for each shape: bytes read for a token, KV cache a token, and
medians of TTFT and TPOT over prompt lengths. The shapes take turns, so that a drift of the machine falls on all, and
the cores that other processes used meanwhile stand below the table.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import numpy as np

from phasegate.engines.cores import client_cores, engine_cores
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.store import ensure_model
from phasegate.engines.host_probe import HostWatch
from phasegate.engines.identity import this_hardware
from phasegate.load.closed import run_closed
from phasegate.load.request import Request
from phasegate.load.target import Target
from phasegate.metric import Undefined, time_per_output_token, time_to_first_token
from phasegate.timeline import Expected
from phasegate.wire.openai_stream import decode

LENGTHS = (64, 256, 1024, 2048)
OUTPUT = 32

SHAPES = {
    "12 x 512, 8192 words": ModelSpec(
        vocabulary=8192, hidden=512, feed_forward=1536, layers=12, heads=8, kv_heads=4, head_size=64
    ),
    "2 x 1024, ff 4096, 32k": ModelSpec(vocabulary=32_768, feed_forward=4096),
    "2 x 1024, ff 8192, 48k": ModelSpec(vocabulary=49_152, feed_forward=8192),
    "2 x 1024, ff 8192, 48k, 2 heads": ModelSpec(vocabulary=49_152, feed_forward=8192, heads=2),
    "2 x 1024, ff 8192, 64k, 2 heads (chosen)": ModelSpec(),
    "2 x 1536, ff 6144, 32k, 2 heads": ModelSpec(hidden=1536, vocabulary=32_768, feed_forward=6144, heads=2),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5, help="requests of each length in a round")
    given = parser.parse_args(argv)
    if client_cores():
        os.sched_setaffinity(0, client_cores())
    rng = np.random.default_rng()
    found: dict[str, dict[int, list[tuple[float, float]]]] = {name: {n: [] for n in LENGTHS} for name in SHAPES}
    foreign = []
    for _ in range(given.rounds):
        for name, spec in SHAPES.items():
            foreign.append(_measure(spec, rng, found[name], given.repeats))
    lengths = " / ".join(map(str, LENGTHS))
    print(
        f"| shape | file MB | read a token MB | KV B a token | TTFT at {lengths} ms | TPOT ms | TPOT 2,048 against 64 |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, spec in SHAPES.items():
        ttft, tpot = ([1e3 * float(np.median([pair[i] for pair in found[name][n]])) for n in LENGTHS] for i in (0, 1))
        read = (spec.parameters - spec.vocabulary * spec.hidden) * 34 / 32 / 1e6
        kv = spec.layers * 2 * spec.kv_heads * spec.head_size * 2
        size = ensure_model(spec).stat().st_size / 1e6
        print(
            f"| {name} | {size:.0f} | {read:.0f} | {kv} | {' / '.join(f'{x:.0f}' for x in ttft)} | "
            f"{' / '.join(f'{x:.2f}' for x in tpot)} | {tpot[-1] / tpot[0] - 1:+.1%} |"
        )
    print(
        f"\n{this_hardware()}; {given.rounds} x {given.repeats} requests a cell; other processes used "
        f"{np.mean(foreign):.2f} cores on average, {max(foreign):.2f} in the busiest turn"
    )


def _measure(
    spec: ModelSpec, rng: np.random.Generator, found: dict[int, list[tuple[float, float]]], repeats: int
) -> float:
    """Adds (TTFT, TPOT) for every prompt length; returns how many cores other processes used meanwhile."""
    with EmbeddedEngine(EmbeddedConfig(model=str(ensure_model(spec)))) as engine:
        watch = HostWatch(engine_cores())
        words = EmbeddedEngine().words
        target = Target(engine.base_url, engine.model)
        requests = [
            Request(
                f"{length}-{i}",
                "completions",
                {
                    "prompt": " ".join(rng.choice(words, length)),
                    "max_tokens": OUTPUT,
                    "ignore_eos": True,
                    "temperature": 0,
                },
                Expected("completions", cold_prompt=False),
            )
            for i in range(repeats)
            for length in LENGTHS
        ]
        lines = [decode(recording) for recording in run_closed(target, requests, max_concurrency=1).recordings]
        for request, line in zip(requests, lines, strict=True):
            ttft, tpot = time_to_first_token(line), time_per_output_token(line)
            if not isinstance(ttft, Undefined) and not isinstance(tpot, Undefined):
                found[int(request.request_id.split("-")[0])].append((ttft, tpot))
        return watch.report().foreign


if __name__ == "__main__":
    main()
