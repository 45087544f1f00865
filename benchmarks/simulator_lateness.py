"""How late the simulator's chunks leave, against its own plan, by number of streams.

Run ``python -m benchmarks.simulator_lateness``. A bare reader takes the bytes and throws them away; the figures come
from the simulator's truth log: the moment a chunk was handed to the kernel less the moment it was planned for.
"""

from __future__ import annotations

import argparse
import json
import resource
import selectors
import socket
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.process import SimulatorProcess
from phasegate.engines.simulator.truth import Truth, read_log

STREAMS = (1, 16, 64, 256, 2_000)
PACE = 50.0
"""Tokens a second of each stream."""
CHUNKS_A_SECOND = 20_000.0
"""More than this one process cannot send in time, so the pace is lowered where there are many streams."""
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Lateness:
    """One run.

    Attributes:
        batching: how the requests shared the engine.
        streams: how many ran at a time.
        pace: tokens a second of each.
        chunks: how many chunks were measured.
        p50, p99, worst: seconds late.
        tpot_error: median over the answers of how much longer the real time per token was than the planned one,
            as a fraction.
        cpu_per_chunk: the server's CPU seconds for each chunk, everything included.
        whole: answers that came through whole.
    """

    batching: str
    streams: int
    pace: float
    chunks: int
    p50: float
    p99: float
    worst: float
    tpot_error: float
    cpu_per_chunk: float
    whole: int


def config_for(batching: Batching, streams: int, pace: float) -> SimulatorConfig:
    """An engine that gives each of so many streams its tokens at the same pace."""
    return SimulatorConfig(
        batching=batching,
        step_seconds=1 / pace,
        sequence_seconds=0.0,
        kv_seconds_per_token=0.0,
        prefill_tokens_per_second=1e6,
        max_sequences=max(streams, 1),
        step_token_budget=max(streams, 2_048),
    )


def measure(batching: Batching, streams: int, tokens: int) -> Lateness:
    """Run so many streams at a time, once."""
    pace = min(PACE, CHUNKS_A_SECOND / streams)
    process = SimulatorProcess(config_for(batching, streams, pace))
    try:
        _drain(process.address, _request(tokens), 1)
        process.ask("/log/reset", {})
        server = psutil.Process(process.pid)
        before = sum(server.cpu_times()[:2])
        _drain(process.address, _request(tokens), streams)
        cpu = sum(server.cpu_times()[:2]) - before
        truths = read_log(process.ask("/log"))
    finally:
        process.stop()
    late = sorted(c.actual - c.planned for t in truths for c in t.chunks if c.actual is not None)
    return Lateness(
        batching=batching.value,
        streams=streams,
        pace=pace,
        chunks=len(late),
        p50=late[len(late) // 2],
        p99=late[int(len(late) * 0.99)],
        worst=late[-1],
        tpot_error=statistics.median(_tpot_error(truth) for truth in truths),
        cpu_per_chunk=cpu / len(late),
        whole=sum(truth.outcome == "finished" and len(truth.chunks) == tokens for truth in truths),
    )


def _tpot_error(truth: Truth) -> float:
    first, last = truth.chunks[0], truth.chunks[-1]
    assert first.actual is not None
    assert last.actual is not None
    return (last.actual - first.actual) / (last.planned - first.planned) - 1


def _request(tokens: int) -> bytes:
    body = {
        "model": "simulated",
        "messages": [{"role": "user", "content": "one two three"}],
        "max_tokens": tokens,
        "stream": True,
    }
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _drain(address: str, request: bytes, streams: int) -> None:
    """Send the request on so many connections and read each to its end."""
    parts = urlsplit(address)
    where = (str(parts.hostname), int(parts.port or 0))
    with selectors.DefaultSelector() as selector:
        for _ in range(streams):
            sock = socket.create_connection(where, timeout=PATIENCE_SECONDS)
            selector.register(sock, selectors.EVENT_READ)
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.sendall(request)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(1.0):
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv(1 << 20):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()


COLUMNS = (
    "batching",
    "streams",
    "tokens/s each",
    "whole",
    "chunks",
    "late p50 ms",
    "p99 ms",
    "worst ms",
    "TPOT error p50",
    "CPU µs a chunk",
)


def _cells(run: Lateness) -> tuple[str, ...]:
    return (
        run.batching,
        str(run.streams),
        f"{run.pace:g}",
        str(run.whole),
        str(run.chunks),
        *(f"{seconds * 1e3:.2f}" for seconds in (run.p50, run.p99, run.worst)),
        f"{run.tpot_error:+.3%}",
        f"{run.cpu_per_chunk * 1e6:.0f}",
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    parser.add_argument("--tokens", type=int, default=150, help="tokens of each answer")
    parser.add_argument("--batching", nargs="+", choices=[b.value for b in Batching], default=["continuous", "alone"])
    options = parser.parse_args(arguments)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(_row(COLUMNS))
    print(_row(["---"] * len(COLUMNS)))
    for name in options.batching:
        for streams in options.streams:
            print(_row(_cells(measure(Batching(name), streams, options.tokens))), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
