"""Shapes of the generated model, measured: does TTFT rise with the prompt while TPOT stays where it is?

``python -m benchmarks.model_shapes`` prints one row for each shape: bytes read for a token, KV cache a token, and
medians of TTFT, TPOT and the undisturbed gap between tokens over prompt lengths (64 / 256 / 1,024 / 2,048); last, how
much that gap changes from the shortest prompt to the longest. The shapes take turns, so that a drift of the machine
falls on all, and the cores that other processes used meanwhile stand below the table.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import numpy as np

from phasegate.core.identity import this_hardware
from phasegate.core.metric import Undefined, time_per_output_token, time_to_first_token
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Expected, Timeline
from phasegate.engines.cores import client_cores, engine_cores
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.store import ensure_model
from phasegate.engines.host_probe import HostWatch
from phasegate.load.closed import run_closed
from phasegate.wire.openai_stream import decode

LENGTHS = (64, 256, 1024, 2048)
OUTPUT = 32

Row = tuple[float, float, float]
"""TTFT, TPOT and undisturbed gap of one request, in seconds."""

SHAPES = {
    "12 x 512, ff 1536, 8k words, 8 heads, 4 KV": ModelSpec(
        vocabulary=8192, hidden=512, feed_forward=1536, layers=12, heads=8, kv_heads=4
    ),
    "2 x 1024, ff 4096, 32k words": ModelSpec(vocabulary=32_768, feed_forward=4096),
    "2 x 1024, ff 8192, 64k words, 16 heads": ModelSpec(heads=16),
    "2 x 1024, ff 8192, 64k words (the default)": ModelSpec(),
    "2 x 1536, ff 6144, 32k words": ModelSpec(hidden=1536, vocabulary=32_768, feed_forward=6144),
}
"""Two query heads and one KV head of 64 where nothing else is said."""


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=2, help="requests of each length in a round")
    parser.add_argument("--only", default="", help="measure the shapes whose name holds this text")
    given = parser.parse_args(argv)
    if client_cores():
        os.sched_setaffinity(0, client_cores())
    rng = np.random.default_rng()
    found: dict[str, dict[int, list[Row]]] = {name: {n: [] for n in LENGTHS} for name in SHAPES}
    shapes = {name: spec for name, spec in SHAPES.items() if given.only in name}
    foreign = []
    for _ in range(given.rounds):
        for name, spec in shapes.items():
            foreign.append(_measure(spec, rng, found[name], given.repeats))
    print("| shape | file MB | read a token MB | KV B a token | TTFT ms | TPOT ms | undisturbed gap ms | its change |")
    print("|---|---:|---:|---:|---|---|---|---|")
    for name, spec in shapes.items():
        print(_row(name, spec, found[name]))
    print(
        f"\n{this_hardware()}; {given.rounds} x {given.repeats} requests a cell; other processes used "
        f"{np.mean(foreign):.2f} cores on average, {max(foreign):.2f} in the busiest turn"
    )


def _row(name: str, spec: ModelSpec, found: dict[int, list[Row]]) -> str:
    """Medians at each of `LENGTHS`; the change of the undisturbed gap as median and quartiles over pairs."""
    ttft, tpot, gap = ([1e3 * float(np.median([one[i] for one in found[n]])) for n in LENGTHS] for i in range(3))
    # Within one repeat the lengths follow each other, so a ratio inside it is free of slower drifts.
    change = [long[2] / short[2] - 1 for short, long in zip(found[LENGTHS[0]], found[LENGTHS[-1]], strict=True)]
    low, middle, high = np.percentile(change, (25, 50, 75))
    read = (spec.parameters - spec.vocabulary * spec.hidden) * 34 / 32 / 1e6
    kv = spec.layers * 2 * spec.kv_heads * spec.head_size * 2
    size = ensure_model(spec).stat().st_size / 1e6
    return (
        f"| {name} | {size:.0f} | {read:.0f} | {kv} | {' / '.join(f'{x:.0f}' for x in ttft)} | "
        f"{' / '.join(f'{x:.2f}' for x in tpot)} | "
        f"{' / '.join(f'{x:.2f}' for x in gap)} | {middle:+.1%} ({low:+.1%} to {high:+.1%}) |"
    )


def _undisturbed_gap(line: Timeline) -> float:
    """The 10th percentile of the gaps between tokens: what decode takes while no neighbour uses the caches."""
    return float(np.percentile(np.diff([token.at for token in line.tokens]), 10))


def _measure(spec: ModelSpec, rng: np.random.Generator, found: dict[int, list[Row]], repeats: int) -> float:
    """Adds a row for every request; returns how many cores other processes used meanwhile."""
    with EmbeddedEngine(EmbeddedConfig(model=str(ensure_model(spec)))) as engine:
        watch = HostWatch(engine_cores())
        words = EmbeddedEngine().words
        target = Target(engine.base_url, engine.model)
        # The first request reads the weights from disk and is not counted.
        requests = [
            Request(
                f"{length}-{i}",
                "completions",
                {
                    "prompt": "".join(f" {word}" for word in rng.choice(words, length)),
                    "max_tokens": OUTPUT,
                    "ignore_eos": True,
                    "temperature": 0,
                },
                Expected("completions", cold_prompt=False),
            )
            for i, length in [(-1, LENGTHS[0]), *((i, length) for i in range(repeats) for length in LENGTHS)]
        ]
        lines = [decode(recording) for recording in run_closed(target, requests, max_concurrency=1).recordings]
        for request, line in list(zip(requests, lines, strict=True))[1:]:
            ttft, tpot = time_to_first_token(line), time_per_output_token(line)
            if isinstance(ttft, Undefined) or isinstance(tpot, Undefined):
                raise SystemExit(f"{request.request_id}: not measured ({line.error_message})")
            found[int(request.request_id.split("-")[0])].append((ttft, tpot, _undisturbed_gap(line)))
        return watch.report().foreign


if __name__ == "__main__":
    main()
