"""The server's own clock beside the client's: one row for every cell, and what the server counted, in few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table

from phasegate.core.metric import metric_named
from phasegate.core.timeline import Timeline
from phasegate.core.units import format_percent, format_seconds
from phasegate.measure.server_metrics import ServerMetrics, impossible
from phasegate.report.table_text import render_table
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_token import (
    FirstToken,
    median_split,
    server_decode,
    split_by_counts,
)
from phasegate.stats.workload_run import WorkloadRun, usable_value

if TYPE_CHECKING:
    from phasegate.measure.load_runner import LoadRunner

CLOSE = 0.001
"""An unexplained rest of a TTFT above a millisecond is said in words as well."""


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One cell, or one workload where the server tells means only.

    Attributes:
        label: of the cell, or the workload's name with ``mean``.
        split: the TTFT in parts.
        tpot: the client's, seconds a token; None without one.
        decode: the server's seconds a token from its first to its last; None where it does not tell.
        handoff: mean seconds of a KV cache from the worker that read the prompt to the one that writes; None where the
            server tells of none.
    """

    label: str
    split: FirstToken
    tpot: float | None
    decode: float | None
    handoff: float | None = None


def server_rows(run: WorkloadRun, view: ServerMetrics) -> list[ServerRow]:
    """Medians by cell where answers carry timings, else means over the whole workload; none where nothing is told."""
    rows = []
    for cell in run.workload.cells:
        middle = median_split(view.splits(run, cell))
        if middle is not None:
            lines = [line for line in run.timelines(cell) if line.status == "ok" and line.sample_valid]
            decode = [value for line in lines if (value := server_decode(line)) is not None]
            own = float(np.median(decode)) if decode else None
            rows.append(ServerRow(cell.label, middle, _tpot(lines), own))
    if rows or run.server is None:
        return rows
    split = split_by_counts(run.timelines(), run.server, view.overheads.get(run.workload.endpoint or ""))
    if not isinstance(split, FirstToken):
        return []
    tpot, mean = _tpot(run.timelines()), _mean_decode(run, run.server)
    return [ServerRow(f"{run.workload.name}, mean", split, tpot, mean, run.server.mean("handoff"))]


def _tpot(lines: Sequence[Timeline]) -> float | None:
    values = [value for line in lines if (value := usable_value(line, metric_named("tpot"))) is not None]
    return float(np.median(values)) if values else None


def _mean_decode(run: WorkloadRun, counts: ServerCounts) -> float | None:
    """The server's seconds of decoding over the tokens that came after a first one."""
    answered = [line for line in run.timelines() if line.status == "ok" and line.output_tokens]
    further = sum((line.output_tokens or 1) - 1 for line in answered)
    seconds = counts.grown.get("decode")
    return seconds / further if seconds is not None and further else None


def server_lines(view: ServerMetrics, runs: Sequence[WorkloadRun], width: int, *, colour: bool) -> list[str]:
    """Everything the server told; nothing where it told nothing."""
    rows = [row for run in runs for row in server_rows(run, view)]
    lines: list[str] = [line for table in _tables(rows) for line in render_table(table, width, colour=colour)]
    lines += list(_rest(rows))
    for run in runs:
        reason = impossible(run)
        lines += [f"{run.workload.name}: {reason}"] if reason is not None else []
        lines += [f"{run.workload.name}: {said}" for said in count_words(run.server)] if run.server else []
    if view.remark is not None:
        lines.append(f"note: {view.remark}")
    return lines


Column = tuple[str, Callable[[ServerRow], float | None]]

MOST_COLUMNS = 9
"""Columns that leave a screen of 80 characters room for a workload's name."""


def _tables(rows: Sequence[ServerRow]) -> list[Table]:
    """Milliseconds; columns that nobody can fill are left out, and those of decode stand apart where there are many."""
    columns: list[Column] = [
        ("TTFT", lambda row: row.split.client),
        ("server", lambda row: row.split.server),
        ("queue", lambda row: row.split.queue),
        ("prefill", lambda row: row.split.prefill),
        ("front", lambda row: row.split.inside_rest),
        ("http", lambda row: row.split.http),
        ("text", lambda row: row.split.tokenising),
        ("held", lambda row: row.split.first_decode),
        ("rest", lambda row: row.split.unexplained),
        ("hand-off", lambda row: row.handoff),
        ("TPOT", lambda row: row.tpot),
        ("decode", lambda row: row.decode),
    ]
    if not rows:
        return []
    shown = [(name, take) for name, take in columns if any(take(row) is not None for row in rows)]
    if all(row.split.server == row.split.prefill is not None for row in rows):
        # llama.cpp: from the slot that took the request to the first token is the prefill.
        shown = [(name, take) for name, take in shown if name != "server"]
    if len(shown) <= MOST_COLUMNS:
        return [_table(rows, shown)]
    decode = [(name, take) for name, take in shown if name in ("hand-off", "TPOT", "decode")]
    return [_table(rows, [one for one in shown if one not in decode]), _table(rows, decode)]


def _table(rows: Sequence[ServerRow], shown: Sequence[Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("ms", overflow="fold")
    for name, _ in shown:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.label, *(_ms(take(row)) for _, take in shown))
    return table


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    value = seconds * 1e3
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _rest(rows: Sequence[ServerRow]) -> Iterator[str]:
    """How well the two clocks agree, in one line."""
    rests = [row.split.unexplained for row in rows if row.split.unexplained is not None]
    if not rests or all(row.split.http is None for row in rows):
        return
    worst = max(rests, key=abs)
    if abs(worst) <= CLOSE:
        yield f"TTFT is explained within {abs(worst) * 1e3:.2f} ms by the server's clock, HTTP and tokenising"
    else:
        yield (
            f"up to {worst * 1e3:.1f} ms of TTFT are explained by neither clock: "
            "other work on the hosts, or a proxy or queue in front of the engine"
        )


MANY_LEVELS = 4
"""Names of levels up to which a line lists them."""


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:MANY_LEVELS])
    return listed if len(names) <= MANY_LEVELS else f"{listed} and {len(names) - MANY_LEVELS} more"


def level_lines(load: LoadRunner) -> Iterator[str]:
    """What the server counted at each level of load: who waited and ran in it, streams in a step, what it gave up."""
    alike: dict[str, list[str]] = {}
    by_number = ([run for _, run in sorted(runs.items())] for runs in (load.levels, load.rates))
    for run in chain.from_iterable(by_number):
        if run.server is None:
            continue
        means = [
            (word, run.server.mean(word, run.sent)) for word in ("queue", "prefill") if word in run.server.observed
        ]
        waits = [f"{word} {format_seconds(value)}" for word, value in means if value is not None]
        said = [f"by the server's clock {', '.join(waits)} a request"] if waits else []
        said += [one for one in (moment_words(run.server, run.window),) if one]
        shared = run.server.streams_per_step
        said += [] if shared is None else [f"{shared:.1f} streams in a step by the server's count"]
        said += count_words(run.server)
        if said:
            alike.setdefault("; ".join(said), []).append(run.name)
    for text, names in alike.items():
        yield f"{_names(names)}: {text}"


def moment_words(counts: ServerCounts, seconds: float) -> str:
    """How many requests waited and ran at a moment of a span of so many seconds; empty where it does not tell."""
    numbers = (("running", counts.mean_running(seconds)), ("waiting", counts.mean_waiting(seconds)))
    told = [f"{mean:.1f} {word}" for word, mean in numbers if mean is not None]
    return f"on average {' and '.join(told)} in the server" if told else ""


def count_words(counts: ServerCounts) -> list[str]:
    """What the server counted that is worth a line: cache hits, preemptions, acceptance, hand-offs."""
    said = []
    rate, acceptance = counts.cache_hit_rate, counts.acceptance
    if rate:
        said.append(f"{format_percent(rate, digits=0)} of prompt tokens from the prefix cache")
    if counts.grown.get("preemptions"):
        said.append(f"{counts.grown['preemptions']:.0f} preemptions")
    if acceptance is not None:
        said.append(f"{format_percent(acceptance, digits=0)} of drafted tokens accepted")
    said += handoff_words(counts)
    if counts.reset:
        said.append(f"counters were reset meanwhile and are not used: {', '.join(counts.reset)}")
    return ["the server counted " + "; ".join(said)] if said else []


def handoff_words(counts: ServerCounts) -> list[str]:
    """How long and how large the moves of KV caches between workers were; empty where the server tells of none."""
    mean, moves = counts.mean("handoff"), counts.observed.get("handoff")
    if mean is None or not moves:
        return []
    size = counts.grown.get("handoff_bytes")
    each = f" and {size / moves / 1e6:,.1f} MB" if size else ""
    return [f"{moves:.0f} hand-offs of a KV cache, {format_seconds(mean)}{each} each"]
