"""The table of `benchmarks.client`, and the page that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._other_run import Tool
from benchmarks._page import host_line, load_line, now_line, row

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "client-benchmark.md"


@dataclass(frozen=True, slots=True)
class Figures:
    """One reader at one concurrency: seconds, fractions and bytes; medians over the runs.

    Attributes:
        reader, concurrency: what was run.
        ttft_error_p50, ttft_error_p99: seconds.
        tpot_error_p50, tpot_error_p99: fractions.
        cpu_per_chunk: seconds; ``cpu_ratio`` against the bare reader, ``cpu_by_ours`` against ours.
        ttft_by_ours: p99 of the TTFT error against ours; None where ours was not run.
        pace: tokens a second at which the server really sent a stream.
        memory_per_stream: bytes.
        lost: requests that did not come back whole.
        runs: runs behind the medians.
    """

    reader: str
    concurrency: int
    ttft_error_p50: float
    ttft_error_p99: float
    tpot_error_p50: float
    tpot_error_p99: float
    cpu_per_chunk: float
    cpu_ratio: float
    cpu_by_ours: float | None
    ttft_by_ours: float | None
    pace: float
    memory_per_stream: float
    lost: float
    runs: int


COLUMNS = (
    "streams",
    "reader",
    "tokens/s sent",
    "TTFT error p50 ms",
    "p99 ms",
    "p99 by ours",
    "TPOT error p50",
    "p99",
    "CPU us/chunk",
    "by bare",
    "by ours",
    "KiB/stream",
    "lost",
)


def render(table: Sequence[Figures], runs: int) -> str:
    """The table as Markdown."""
    head = f"All streams started together; medians of {runs} runs."
    lines = [head, "", row(COLUMNS), row(["---:", "---", *["---:"] * (len(COLUMNS) - 2)])]
    for one in table:
        few = f" ({one.runs} of {runs} runs)" if one.runs < runs else ""
        cells = (
            str(one.concurrency),
            one.reader + few,
            f"{one.pace:.1f}",
            f"{one.ttft_error_p50 * 1e3:.2f}",
            f"{one.ttft_error_p99 * 1e3:.2f}",
            _times(one.ttft_by_ours),
            f"{one.tpot_error_p50:.3%}",
            f"{one.tpot_error_p99:.3%}",
            f"{one.cpu_per_chunk * 1e6:.0f}",
            _times(one.cpu_ratio),
            _times(one.cpu_by_ours),
            f"{one.memory_per_stream / 1024:.0f}",
            f"{one.lost:.0f}",
        )
        lines.append(row(cells))
    return "\n".join(lines)


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:,.0f}x" if abs(ratio) >= 100 else f"{ratio:.2f}x"


EXPLANATION = """\
A loopback server on a core of its own sends the first token after 100 ms and then one every 20 ms, where it can keep
up (*tokens/s sent* is what it did), and logs when each request reached its host and when each chunk left. The **TTFT
error** is what a reader reports beyond what the log says of the same request; the **TPOT error** is relative and
absolute. **CPU** is that of the reader, all its processes together, from the first request to the last token, by
token chunks; every reader has the one core that the server leaves. **Lost** are requests that it did not report as
whole. The bare reader is an `asyncio.Protocol` that stamps bytes and does nothing else. *By ours* and *by bare* are
ratios: how many times as much as ours, or as the bare reader.

The bare reader and ours start their clock at the write, and have built requests and opened connections before; the
others start it where their users do, at the call. With all streams starting together their figure therefore holds the
building of the other requests as well: that is what their users take for the server's time.
"""


def client_page(
    table: Sequence[Figures], runs: int, words: str, tools: Mapping[str, Tool], trouble: Sequence[str]
) -> str:
    """The whole page."""
    parts = [
        "# How far the measuring client is from the truth\n",
        f"Written by `python -m benchmarks.client {words}` on {now_line()}.",
        f"Machine: {host_line()}; {load_line()} when it was done.\n",
        render(table, runs),
        "",
        EXPLANATION,
    ]
    if tools:
        parts.append("Tools of others, installed from the package index and run as their users run them:\n")
        parts += [*(f"* **{name}**: {tool.about}." for name, tool in tools.items()), ""]
    if trouble:
        parts.append("What did not run:\n")
        parts += [*(f"* {line}" for line in trouble), ""]
    parts.append("How the client reaches this is in [decision 1](../decisions/0001-client-transport.md).\n")
    return "\n".join(parts)
