"""The situation in what one run measured: workloads alone, levels of load, collisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.timeline import Timeline
from phasegate.core.workload import Cell
from phasegate.diagnose.observations import (
    Ask,
    CacheCalls,
    Level,
    Limits,
    Machine,
    Observations,
    Repeats,
    Stall,
)
from phasegate.diagnose.server_times import Span, with_counts
from phasegate.diagnose.steps import gaps_of, steps_of
from phasegate.gate.slo import Objective
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_token import split_by_timings
from phasegate.stats.level_run import Collision, LevelRun
from phasegate.stats.workload_run import WorkloadRun

FIRST_ROLES = ("cold", "first")
AGAIN = {"cold": "cached", "first": "next"}
"""The role of a first call -> the role of the call that may find it in the cache."""


def observations_of(
    runs: Iterable[WorkloadRun],
    *,
    levels: Iterable[LevelRun] = (),
    collisions: Sequence[Collision] = (),
    repeats: Repeats | None = None,
    objectives: Iterable[Objective] = (),
    machine: Machine | None = None,
    host: Sequence[str] = (),
) -> Observations:
    """What was measured, as the diagnosis takes it."""
    runs, levels = list(runs), sorted(levels, key=lambda one: one.level)
    notes = [note for run in runs for note in run.notes] + [note for level in levels for note in level.notes]
    return Observations(
        asks=tuple(ask for run in runs for ask in _asks(run)),
        levels=tuple(_level(one) for one in levels if one.sent and not one.by_rate),
        stall=_stall(collisions),
        caches=tuple(calls for run in runs for calls in _cache_calls(run)),
        repeats=repeats,
        machine=machine or Machine(),
        limits=limits_of(objectives),
        client=tuple(dict.fromkeys(notes)),
        host=tuple(host),
    )


def limits_of(objectives: Iterable[Objective]) -> Limits:
    """The strictest objective of each phase."""
    strictest: dict[str, Objective] = {}
    for one in objectives:
        known = strictest.get(one.metric)
        if known is None or one.limit < known.limit:
            strictest[one.metric] = one
    ttft, tpot = strictest.get("ttft"), strictest.get("tpot")
    source = ", ".join(one.text for one in (ttft, tpot) if one is not None)
    return Limits(ttft.limit if ttft else None, tpot.limit if tpot else None, source)


def _asks(run: WorkloadRun) -> list[Ask]:
    """One kind of request for each cell whose prompt is new to the server."""
    found = []
    cells = run.workload.cells
    alike = len({cell.input_tokens for cell in cells}) == 1 and all(cell.role in FIRST_ROLES for cell in cells)
    for cell in cells:
        lines = [line for line in run.timelines(cell) if line.status == "ok" and line.sample_valid]
        if cell.role in FIRST_ROLES and lines:
            ask = _with_drafts(ask_of(cell.label, lines, cell.input_tokens), run.server)
            ttfts = list(run.values("ttft", cell).values())
            found.append(with_counts(ask, ttfts, run.server, Span(len(run.measured), alike)))
    return found


def _with_drafts(ask: Ask, server: ServerCounts | None) -> Ask:
    """The counts of guesses from the server's own page, where its answers carry none."""
    if server is None or ask.steps is None or ask.steps.drafted is not None or not server.grown.get("drafted_tokens"):
        return ask
    drafted, accepted = (round(server.grown.get(word, 0.0)) for word in ("drafted_tokens", "accepted_tokens"))
    return replace(ask, steps=replace(ask.steps, drafted=drafted, accepted=accepted))


def ask_of(name: str, lines: Sequence[Timeline], prompt_tokens: int | None = None) -> Ask:
    """The medians of some equal requests that had the server to themselves; at least one."""
    gaps = gaps_of(lines)
    prefill, queue = _server(lines)
    return Ask(
        name=name,
        prompt_tokens=prompt_tokens if prompt_tokens is not None else _whole([line.prompt_tokens for line in lines]),
        output_tokens=_median([line.output_tokens for line in lines]),
        ttft=_metric(lines, "ttft"),
        ttfo=_metric(lines, "ttfo"),
        tpot=_metric(lines, "tpot"),
        total=_metric(lines, "e2el"),
        reasoning_tokens=_median([line.reasoning_tokens for line in lines]),
        connect=_metric(lines, "connect"),
        server_prefill=prefill,
        server_queue=queue,
        second_gap=gaps.second,
        usual_gap=gaps.usual,
        longest_gap=gaps.longest,
        steps=steps_of(lines),
    )


def _metric(lines: Sequence[Timeline], name: str) -> float | None:
    row = metric_named(name)
    values = [row.measure(line) for line in lines]
    return _median([value for value in values if not isinstance(value, Undefined)])


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def _whole(values: Iterable[int | None]) -> int | None:
    middle = _median(values)
    return None if middle is None else round(middle)


def _server(lines: Sequence[Timeline]) -> tuple[float | None, float | None]:
    """Medians of the server's own prefill and queue times, where it tells them with each answer."""
    splits = [split for line in lines if not isinstance(split := split_by_timings(line), Undefined)]
    return _median([one.prefill for one in splits]), _median([one.queue for one in splits])


def _level(run: LevelRun) -> Level:
    prefill, queue = _server([line for line in run.timelines if line.status == "ok"])
    return Level(
        users=run.level,
        ttft=run.median("ttft"),
        tpot=run.median("tpot"),
        total=run.median("e2el"),
        token_rate=run.token_rate,
        usual_gap=run.median_gap(),
        server_prefill=prefill if prefill is not None else _counted(run, "prefill"),
        server_queue=queue if queue is not None else _counted(run, "queue"),
        streams_per_step=None if run.server is None else run.server.streams_per_step,
        waiting=None if run.server is None else run.server.mean_waiting(run.window),
        running=None if run.server is None else run.server.mean_running(run.window),
        requests=run.sent,
        preemptions=None if run.server is None else run.server.grown.get("preemptions"),
    )


def _counted(run: LevelRun, word: str) -> float | None:
    """Seconds a request by the server's own counters."""
    return None if run.server is None else run.server.mean(word, run.sent)


def _stall(collisions: Sequence[Collision]) -> Stall | None:
    if not collisions:
        return None
    stall, alone, gap = (
        float(np.median([getattr(one, name) for one in collisions])) for name in ("stall", "alone", "usual_gap")
    )
    return Stall(stall, alone, gap, collisions[0].intruder.prompt_tokens)


def _cache_calls(run: WorkloadRun) -> list[CacheCalls]:
    """First and second calls of the workload's cells."""
    found = []
    by_role = {(cell.input_tokens, cell.output_tokens, cell.role): cell for cell in run.workload.cells}
    for cell in run.workload.cells:
        again = by_role.get((cell.input_tokens, cell.output_tokens, AGAIN.get(cell.role, "")))
        calls = _calls(run, cell, again, by_role.get((cell.input_tokens, cell.output_tokens, "control")))
        if calls is not None:
            found.append(calls)
    return found


def _calls(run: WorkloadRun, first: Cell, again: Cell | None, control: Cell | None) -> CacheCalls | None:
    if again is None:
        return None
    old, new = (_median(run.values("ttft", cell).values()) for cell in (first, again))
    if not old or not new:
        return None
    return CacheCalls(
        name=first.label,
        prompt_tokens=first.input_tokens,
        shared_tokens=run.workload.shared_tokens or first.input_tokens,
        first=old,
        again=new,
        control=_median(run.values("ttft", control).values()) if control is not None else None,
        cached_tokens=_median(run.cached_tokens(again)),
        hit_rate=None if run.server is None else run.server.cache_hit_rate,
        unmarked=run.unmarked,
    )
