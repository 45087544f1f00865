"""How far is the measuring client from the truth? ``python -m benchmarks.client``

Against a loopback server that logs when each chunk really left, our client is compared in the same run
with a bare asyncio reader and with the ways to read a stream through the openai package. Server and client
have a core each where there are two. All streams of a run start together; every reader of every run has a
process of its own; readers take turns.

    TTFT error of a request = (moment the reader saw the first token - moment its clock started)
                            - (moment the first token left the server - moment the request reached its host)

Both truths are taken on the same monotonic clock: leaving just before the server's ``send``, reaching by the
kernel's receive stamp. The clock starts at the write for the bare reader and ours, and at the call for the
library loops, which is where their users start it (so theirs holds the building of the request and, as all
start together, the waiting for each other's). TPOT error is the absolute relative error of
(last - first) / (tokens - 1) of a request. CPU is the process's from the first send to the last end, by token
chunks. Bare and ours have built their requests and opened their connections before that; the library loops do
both inside, as they do for their users. Memory is the growth of the peak, by streams; 0 means that it fitted into
what the imports had left free. Medians over the runs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from typing import Any

from benchmarks._readers import READERS

FIRST, GAP = 0.1, 0.02
"""Seconds to the first token and between tokens: 50 tokens a second a stream."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One reader at one concurrency: seconds, fractions and bytes; medians over the runs."""

    reader: str
    concurrency: int
    ttft_error_p50: float
    ttft_error_p99: float
    tpot_error_p50: float
    tpot_error_p99: float
    cpu_per_chunk: float
    cpu_ratio: float
    memory_per_stream: float
    lost: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print one table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=60, help="token chunks a stream")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    readers = ["bare", *(name for name in options.readers if name != "bare")]
    table: list[Figures] = []
    for concurrency in options.concurrency:
        table += measure(readers, concurrency, options.runs, options.tokens)
    if options.json:
        print(json.dumps([asdict(row) for row in table], indent=1))
    else:
        print(render(table, options.runs))


def measure(readers: Sequence[str], concurrency: int, runs: int, tokens: int) -> list[Figures]:
    """All readers at one concurrency, taking turns."""
    results: dict[str, list[dict[str, float]]] = {reader: [] for reader in readers}
    for run in range(runs):
        turn = run % len(readers)
        for reader in (*readers[turn:], *readers[:turn]):
            results[reader].append(_one_run(reader, concurrency, tokens))
    bare = statistics.median(result["cpu"] for result in results["bare"])
    return [_figures(reader, concurrency, results[reader], bare) for reader in readers]


def _figures(reader: str, concurrency: int, results: list[dict[str, float]], bare: float) -> Figures:
    mid = {name: statistics.median(result[name] for result in results) for name in results[0]}
    return Figures(
        reader=reader,
        concurrency=concurrency,
        ttft_error_p50=mid["ttft_p50"],
        ttft_error_p99=mid["ttft_p99"],
        tpot_error_p50=mid["tpot_p50"],
        tpot_error_p99=mid["tpot_p99"],
        cpu_per_chunk=mid["cpu"],
        cpu_ratio=mid["cpu"] / bare,
        memory_per_stream=mid["memory"],
        lost=mid["lost"],
    )


def _one_run(reader: str, concurrency: int, tokens: int) -> dict[str, float]:
    server_core, client_core = _cores()
    server = _python("benchmarks._server", "--first", FIRST, "--gap", GAP, "--tokens", tokens, core=server_core)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1"
        client = _python("benchmarks._readers", reader, "--url", url, "--count", concurrency, core=client_core)
        output, _ = client.communicate(timeout=300)
        if client.returncode:
            raise SystemExit(f"the reader {reader} failed at concurrency {concurrency}")
        return _errors(json.loads(output), _log(port), tokens)
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def _cores() -> tuple[int | None, int | None]:
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[1]) if len(cores) > 1 else (None, None)


def _python(module: str, *arguments: object, core: int | None) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", module, *map(str, arguments)]
    if core is not None:
        words += ["--core", str(core)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _log(port: int) -> dict[str, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/log")
    entries = json.loads(connection.getresponse().read())
    connection.close()
    return {entry["name"]: entry for entry in entries}


def _errors(report: dict[str, Any], log: dict[str, dict[str, Any]], tokens: int) -> dict[str, float]:
    ttft, tpot = [], []
    lost = 0
    for seen in report["seen"]:
        truth = log[seen["name"]]
        left, got = truth["left"], seen["tokens"]
        if len(got) != tokens:
            lost += 1
            continue
        ttft.append((got[0] - seen["started"]) - (left[0] - truth["arrived"]))
        tpot.append(abs((got[-1] - got[0]) / (left[-1] - left[0]) - 1))
    return {
        "ttft_p50": _percentile(ttft, 0.5),
        "ttft_p99": _percentile(ttft, 0.99),
        "tpot_p50": _percentile(tpot, 0.5),
        "tpot_p99": _percentile(tpot, 0.99),
        "cpu": report["cpu"] / (len(report["seen"]) * tokens),
        "memory": report["memory"] / len(report["seen"]),
        "lost": lost,
    }


def _percentile(values: list[float], fraction: float) -> float:
    """Nearest rank; infinite when nothing was seen at all."""
    if not values:
        return math.inf
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def render(table: Sequence[Figures], runs: int) -> str:
    """The table as Markdown."""
    lines = [
        f"50 tokens/s a stream, all streams started together; medians of {runs} runs.",
        "",
        "| streams | reader | TTFT error p50 ms | p99 ms | TPOT error p50 | p99 | CPU us/chunk | against bare "
        "| KiB/stream | lost |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in table:
        lines.append(
            f"| {row.concurrency} | {row.reader} | {row.ttft_error_p50 * 1e3:.2f} | {row.ttft_error_p99 * 1e3:.2f} "
            f"| {row.tpot_error_p50:.3%} | {row.tpot_error_p99:.3%} | {row.cpu_per_chunk * 1e6:.0f} "
            f"| {row.cpu_ratio:.2f}x | {row.memory_per_stream / 1024:.0f} | {row.lost:.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
