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

``--processes 2 4`` adds our client in so many worker processes, which share all cores but the server's.
``--others`` adds the load tools of others, installed from the package index (`benchmarks._others`), at every
concurrency or at those named behind it; ``--page`` writes `docs/explanation/client-benchmark.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks import _others
from benchmarks._client_page import PAGE, Figures, client_page, render
from benchmarks._errors import summary
from benchmarks._other_run import Tool, ToolFailedError
from benchmarks._page import write_page
from benchmarks._readers import READERS

FIRST = 0.1
"""Seconds to the first token."""

MOST_CHUNKS = 51_200
"""Chunks a second that the server is asked for, which is what one process of Python sends; with more streams than 1,024
each gets a slower pace."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print one table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=60, help="token chunks a stream")
    parser.add_argument("--pace", type=float, default=50.0, help="tokens a second of each stream (default: 50)")
    parser.add_argument("--readers", nargs="+", choices=READERS, default=list(READERS))
    parser.add_argument("--processes", type=int, nargs="+", default=[], help="beside ours, ours in so many processes")
    parser.add_argument(
        "--others", type=int, nargs="*", metavar="STREAMS", help="vLLM bench, AIPerf and GuideLLM too (default: at all)"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, nargs="?", const=PAGE, help=f"write the page (default: {PAGE.name})")
    options = parser.parse_args(arguments)
    tools, trouble = _others.installed() if options.others is not None else ({}, [])
    several = {f"ours x{count}": count for count in options.processes}
    readers = ["bare", *(name for name in options.readers if name != "bare"), *several]
    table: list[Figures] = []
    for concurrency in options.concurrency:
        pace = min(options.pace, MOST_CHUNKS / concurrency)
        plan = Plan(concurrency, options.runs, options.tokens, pace, tools, several)
        with_tools = tools if not options.others or concurrency in options.others else ()
        table += measure([*readers, *with_tools], plan, trouble)
    if options.json:
        print(json.dumps([asdict(row) for row in table], indent=1))
    else:
        print("\n".join([render(table, options.runs), *trouble]))
    if options.page is not None:
        words = shlex.join(sys.argv[1:] if arguments is None else arguments)
        write_page(options.page, client_page(table, options.runs, words, tools, trouble))


@dataclass(frozen=True, slots=True)
class Plan:
    """What every reader does at one concurrency.

    Attributes:
        concurrency, tokens: streams, and token chunks of each.
        runs: of each reader.
        pace: tokens a second of each stream.
        tools: readers that are load tools of others.
        processes: readers that are ours in several processes, and how many.
    """

    concurrency: int
    runs: int
    tokens: int
    pace: float
    tools: Mapping[str, Tool]
    processes: Mapping[str, int] = field(default_factory=dict)


def measure(readers: Sequence[str], plan: Plan, trouble: list[str]) -> list[Figures]:
    """All readers at one concurrency, taking turns; a tool that fails adds a line to ``trouble``."""
    results: dict[str, list[dict[str, float]]] = {reader: [] for reader in readers}
    for run in range(plan.runs):
        turn = run % len(readers)
        for reader in (*readers[turn:], *readers[:turn]):
            try:
                results[reader].append(_one_run(reader, plan))
            except ToolFailedError as error:
                trouble.append(f"{reader} at {plan.concurrency} streams: {error}")
    cpu = {name: statistics.median(one["cpu"] for one in found) for name, found in results.items() if found}
    ours = [one["ttft_p99"] for one in results.get("ours", [])]
    ttft = statistics.median(ours) if ours else None
    return [
        _figures(reader, plan.concurrency, found, cpu["bare"], cpu.get("ours"), ttft)
        for reader, found in results.items()
        if found
    ]


def _figures(
    reader: str,
    concurrency: int,
    results: list[dict[str, float]],
    bare_cpu: float,
    our_cpu: float | None,
    our_ttft: float | None,
) -> Figures:
    mid = {name: statistics.median(result[name] for result in results) for name in results[0]}
    return Figures(
        reader=reader,
        concurrency=concurrency,
        ttft_error_p50=mid["ttft_p50"],
        ttft_error_p99=mid["ttft_p99"],
        tpot_error_p50=mid["tpot_p50"],
        tpot_error_p99=mid["tpot_p99"],
        cpu_per_chunk=mid["cpu"],
        cpu_ratio=mid["cpu"] / bare_cpu,
        cpu_by_ours=mid["cpu"] / our_cpu if our_cpu else None,
        ttft_by_ours=mid["ttft_p99"] / our_ttft if our_ttft and our_ttft > 0 else None,
        memory_per_stream=mid["memory"],
        pace=mid["pace"],
        lost=mid["lost"],
        runs=len(results),
    )


def _one_run(reader: str, plan: Plan) -> dict[str, float]:
    server_core, client_core = _cores()
    timing = ["--first", FIRST, "--gap", 1 / plan.pace, "--tokens", plan.tokens]
    server = _python("benchmarks._server", *timing, core=server_core)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        url = f"http://127.0.0.1:{port}/v1"
        if reader in plan.tools:
            return _others.run_tool(
                plan.tools[reader],
                url=url,
                count=plan.concurrency,
                tokens=plan.tokens,
                core=client_core,
                fetch_log=lambda: _log(port),
            )
        words: list[object] = ["--url", url, "--count", plan.concurrency]
        if reader in plan.processes:
            words = ["ours", *words, "--processes", plan.processes[reader]]
            # Each process on a core of its own, where there are as many beside the server's.
            client = _python("benchmarks._readers", *words, core=_cores_beside(server_core))
        else:
            client = _python("benchmarks._readers", reader, *words, core=client_core)
        output, _ = client.communicate(timeout=300)
        if client.returncode:
            raise SystemExit(f"the reader {reader} failed at concurrency {plan.concurrency}")
        return _errors(json.loads(output), _log(port), plan.tokens)
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


def _cores_beside(server: int | None) -> list[int] | None:
    return None if server is None else sorted(os.sched_getaffinity(0) - {server})


def _python(module: str, *arguments: object, core: int | list[int] | None) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", module, *map(str, arguments)]
    if core is not None:
        words += ["--core", *map(str, core if isinstance(core, list) else [core])]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _log(port: int) -> dict[str, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/log")
    entries = json.loads(connection.getresponse().read())
    connection.close()
    return {entry["name"]: entry for entry in entries}


def _errors(report: dict[str, Any], log: dict[str, dict[str, Any]], tokens: int) -> dict[str, float]:
    ttft, tpot, pace = [], [], []
    lost = 0
    for seen in report["seen"]:
        truth = log[seen["name"]]
        left, got = truth["left"], seen["tokens"]
        if len(got) != tokens:
            lost += 1
            continue
        ttft.append((got[0] - seen["started"]) - (left[0] - truth["arrived"]))
        tpot.append(abs((got[-1] - got[0]) / (left[-1] - left[0]) - 1))
        pace.append((tokens - 1) / (left[-1] - left[0]))
    return summary(
        ttft,
        tpot,
        cpu=report["cpu"] / (len(report["seen"]) * tokens),
        memory=report["memory"] / len(report["seen"]),
        pace=pace,
        lost=lost,
    )


if __name__ == "__main__":
    main()
