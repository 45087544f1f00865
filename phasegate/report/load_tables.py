"""Load in the terminal summary: one row for every level, then what batching, a long prompt and the search showed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.table import Table

from phasegate.core.units import format_percent, format_seconds, format_span
from phasegate.gate.facts import facts_of
from phasegate.gate.slo import Objective, wilson
from phasegate.gate.slo_search import Limit
from phasegate.gate.slo_share import Kept, attained
from phasegate.report.table_text import render_table
from phasegate.report.wrapping import wrapped
from phasegate.stats.client_error import ClientError, OwnError, Watched
from phasegate.stats.level_run import Collision, LevelRun, rounded
from phasegate.stats.percentile import PercentileInterval, needed_to_leave_maximum
from phasegate.wire.count_words import disproof_words

if TYPE_CHECKING:
    from phasegate.measure.load_runner import LoadRunner

CHUNKED_BELOW = 0.5
"""A stall below this share of the long prompt's own prefill shows that prefill was done in pieces."""

WIDE, WIDEST = 110, 190
"""Columns of a screen from which the table has room for further columns, and for intervals."""

Column = tuple[str, Callable[[LevelRun], str]]


def load_lines(load: LoadRunner, objectives: Sequence[Objective], width: int, *, colour: bool) -> list[str]:
    """Everything measured under load, as lines."""
    lines: list[str] = []
    runs = [run for _, run in sorted({**load.searched, **load.levels}.items())]
    rates = [run for _, run in sorted(load.rates.items())]
    if runs or rates:
        lines += render_table(level_table([*runs, *rates], objectives, width), width, colour=colour)
        lines += _wrapped(level_notes([*runs, *rates]), width)
        lines += client_lines([*runs, *rates], load.uncalibrated, width, colour=colour)
        lines += _wrapped(batching_lines([run for _, run in sorted(load.levels.items())]), width)
    return [*lines, *_wrapped([*all_stall_lines(load), *limit_lines(load.found)], width)]


def _wrapped(sentences: Sequence[str], width: int) -> list[str]:
    """Sentences as lines; a table's lines fit already, and their colours would be counted as columns."""
    return [part for one in sentences for part in wrapped(one, width)]


def level_table(runs: Sequence[LevelRun], objectives: Sequence[Objective], width: int) -> Table:
    """Percentiles with failures as infinity, rates, and how many requests kept every objective.

    A wide screen has room for more columns, a very wide one for the 95 % interval of each percentile as well.
    """

    def shown(metric: str, percent: float) -> Callable[[LevelRun], str]:
        return lambda run: _show(run.percentile(metric, percent), interval=width >= WIDEST)

    columns: list[Column] = [
        ("users", lambda run: f"{rounded(run.level)}/s" if run.by_rate else f"{run.level:g}"),
        ("sent", lambda run: str(run.sent)),
        ("TTFT p50", shown("ttft", 50)),
        ("p95", shown("ttft", 95)),
        ("TPOT p50", shown("tpot", 50)),
        ("p95", shown("tpot", 95)),
        ("tok/s", lambda run: f"{run.token_rate:,.0f}"),
    ]
    if objectives:
        columns.append(("kept all", lambda run: _attainment(objectives, run)))
    if width >= WIDE:
        columns += [("total p95", shown("e2el", 95)), ("req/s", lambda run: f"{run.request_rate:.3g}")]
        if objectives:
            columns.append(("good/s", lambda run: f"{run.rate_of(attained(objectives, run)):.3g}"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        table.add_row(*(show(run) for _, show in columns))
        for name in run.names():
            table.add_row(name, *(show(run.part(name)) for _, show in columns[1:]))
    return table


def _show(value: PercentileInterval | None, *, interval: bool) -> str:
    """A percentile; marked where there are so few values that it is the largest one."""
    if value is None:
        return "-"
    mark = "" if value.percent <= 50 or value.n >= needed_to_leave_maximum(value.percent) else "*"
    if not interval:
        return format_seconds(value.value) + mark
    return format_span(value.value, value.low, value.high) + mark


def _attainment(objectives: Sequence[Objective], run: LevelRun) -> str:
    if not run.sent:
        return "-"
    kept = attained(objectives, run)
    low, high = (format_percent(bound, digits=0).removesuffix(" %") for bound in wilson(kept, run.sent))
    return f"{kept / run.sent:.0%} [{low}, {high}]"


def level_notes(runs: Sequence[LevelRun]) -> list[str]:
    """What a reader must know of the levels: failures, missed load, remarks of the client, a stopped run."""
    lines = []
    for run in runs:
        lines += [f"{run.name}: failed: {count} x {kind}" for kind, count in run.failures().items()]
        lines += _infinite_note(run)
        lines += [f"{run.name}: remarked: {count} x {flag}" for flag, count in run.remarks().items() if flag != "burst"]
        lines += [f"{run.name}: INVALID: {run.missed}"] if run.missed else []
        denied = disproof_words(run.timelines)
        lines += [f"{run.name}: {denied}"] if denied is not None else []
        lines += [f"{run.name}: PARTIAL: stopped after {run.sent} requests"] if run.partial else []
        lines += [f"{run.name}: note: {note}" for note in run.notes]
        lines += [f"{run.name}: {run.sent_by}"] if run.sent_by else []
    return lines


def client_lines(runs: Sequence[LevelRun], failed: str | None, width: int, *, colour: bool) -> list[str]:
    """The client's own error at every level, and why it is not known where it is not."""
    rows = [(run.name, run.client) for run in runs if run.client is not None]
    lines = ["the client's own error:", *render_table(client_table(rows), width, colour=colour)] if rows else []
    return lines if failed is None else [*lines, *_wrapped([f"the client could not be calibrated: {failed}"], width)]


def client_table(rows: Sequence[tuple[str, ClientError]]) -> Table:
    """At a server of known timing, and what the run saw of the client."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("load", "TTFT p50", "p99", "TPOT", "reads waited", "loop p99", "CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, client in rows:
        table.add_row(name, *_calibrated(client.own), *_seen(client.watched))
    return table


def _calibrated(own: OwnError | None) -> tuple[str, str, str]:
    if own is None:
        return "-", "-", "-"
    if own.lost:
        return f"{own.lost} of {own.requests} lost", "-", "-"
    return f"+{format_seconds(own.ttft_p50)}", f"+{format_seconds(own.ttft_p99)}", format_percent(own.tpot_p50)


def _seen(seen: Watched | None) -> tuple[str, str, str]:
    if seen is None:
        return "-", "-", "-"
    waited = format_seconds(seen.read_wait) if seen.stamped else "no stamps"
    return waited, format_seconds(seen.loop_lag_p99), format_percent(seen.cpu_share, digits=0)


def _infinite_note(run: LevelRun) -> list[str]:
    """How many requests the percentiles of each latency count as infinite, where there are any."""
    without = {name: run.without(name.lower()) for name in ("TTFT", "TPOT", "E2EL")}
    said = ", ".join(f"{count} in {name}" for name, count in without.items() if count)
    if not said:
        return []
    if len(set(without.values())) == 1:
        said = f"{without['TTFT']} of {run.sent} requests count as infinite in TTFT, TPOT and the total"
    else:
        said = f"of {run.sent} requests count as infinite: {said.replace('E2EL', 'the total')}"
    return [f"{run.name}: {said}"]


def batching_lines(runs: Sequence[LevelRun]) -> list[str]:
    """Throughput of each level against the lowest, and what a single request pays for it."""
    if len(runs) < 2 or runs[0].token_rate <= 0:
        return []
    first = runs[0]
    lines = []
    for run in runs[1:]:
        price = ""
        before, after = first.median("tpot"), run.median("tpot")
        if before and after:
            price = f", TPOT x {after / before:.2f}"
        lines.append(
            f"batching {first.level:g} -> {run.level:g}: throughput x {run.token_rate / first.token_rate:.2f}{price}"
        )
    return lines


def all_stall_lines(load: LoadRunner) -> list[str]:
    """The stall on the engine of the run, and on one that reads prompts in smaller pieces where that was measured."""
    lines = stall_lines(load.collisions)
    if load.chunked_prefill is not None:
        lines += [
            f"with {load.chunked_prefill.setting}: {line}" for line in stall_lines(load.chunked_prefill.collisions)
        ]
    return lines


def stall_lines(collisions: Sequence[Collision]) -> list[str]:
    """What a long prompt did to running streams, and whether its prefill was done in pieces."""
    if not collisions:
        return []
    stall, alone, gap = (
        float(np.median([getattr(one, name) for one in collisions])) for name in ("stall", "alone", "usual_gap")
    )
    said = "read in pieces (chunked prefill)" if stall < CHUNKED_BELOW * alone else "not read in pieces"
    tokens = collisions[0].intruder.prompt_tokens
    return [
        f"a prompt of {tokens if tokens is not None else '?'} tokens stalls {len(collisions[0].streams)} running "
        f"streams for {format_seconds(stall)} (usual gap {format_seconds(gap)}; its own prefill alone "
        f"{format_seconds(alone)}, so the stall is {stall / alone:.2f} of it: {said})"
    ]


def objective_lines(judged: Sequence[Kept], width: int) -> Iterator[tuple[str, str]]:
    """Word and text of every objective that was not kept, or not proven to be; the word is empty where it goes on."""
    for one in judged:
        if one.verdict.green:
            continue
        for number, text in enumerate(wrapped(one.reason, width)):
            yield ("" if number else one.verdict.value), text


def limit_lines(found: Sequence[Limit]) -> list[str]:
    """Where the load breaks an objective, which one first, and why; then each objective, the first to break first."""
    lines = []
    for by_rate in (False, True):
        group = [one for one in found if one.by_rate is by_rate]
        lines += [break_point(group[0])] if group else []
        for one in group:
            lines.append(f"  {one.text}")
            if one.cause is not None:
                lines.append(f"    cause: {one.cause.cause.value}: {one.cause.reason}")
    return lines


def break_point(first: Limit) -> str:
    """The break point in one line: the interval that holds it, the objective, its phase and the cause."""
    what = "requests/s, break point" if first.by_rate else "users at a time, break point"
    if first.broken is None:
        return f"{what}: none found up to {first.at_most:.3g}"
    low = f"between {first.kept:.3g} and" if first.kept is not None else "somewhere up to"
    facts = facts_of(first.objective.metric)
    phase = facts.phase if facts is not None and facts.phase is not None else "both phases"
    cause = "" if first.cause is None else f", cause: {first.cause.cause.value}"
    return f"{what}: {low} {first.broken:.3g}, by {first.objective.text} ({phase}){cause}"
