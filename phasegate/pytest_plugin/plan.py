"""What the collected items will ask of every server, part by part: one count for dry run, plan and limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, log2
from types import CodeType
from typing import TYPE_CHECKING, Any

from phasegate.core.budget import Choice, probe_lengths
from phasegate.core.load_plan import plan_levels, requests_wanted
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.token_budget import NOTHING, Part, Spending, counting_spending, load_spending, spending_of
from phasegate.core.workload import Workload
from phasegate.gate.slo_share import requests_to_prove
from phasegate.load.mix import Mix, quotas
from phasegate.measure.compare_paired import LEAST_BLOCKS, paired_parts
from phasegate.measure.measure_session import SENTINEL
from phasegate.pytest_plugin.chunked_prefill import why_not
from phasegate.pytest_plugin.gate import UPDATE_SESSIONS, store_of
from phasegate.pytest_plugin.load import load_workload_named
from phasegate.pytest_plugin.load_shape import asked_shape

if TYPE_CHECKING:
    from phasegate.pytest_plugin.state import PerfState

LAW_ROUNDS = 4
"""Times as many requests as planned that an undecided law may come to (see `plugin.MORE_ROUNDS`)."""

CLIENT_SECONDS = 1.5
"""What it takes to measure the client's own error at one concurrency; about that on two cores."""

KNOWN_WORDS = ("embedded", "simulator")
"""Engines that are started with a vocabulary whose words are one token each."""

LOAD_CALLS = frozenset({"judge_objective", "batching", "stall", "stall_in_pieces", "judge_limits"})
"""What items ask of `PytestLoad`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the collected items use.

    Attributes:
        items: how many measure something.
        fixtures: of all items together.
        runs: workloads that items measure by themselves -> whether a law judges them.
        calls: what items ask of the load.
    """

    items: int = 0
    fixtures: frozenset[str] = frozenset()
    runs: tuple[tuple[str, bool], ...] = ()
    calls: frozenset[str] = frozenset()


def wanted_by(items: Iterable[Any], workloads: Iterable[str]) -> Wanted:
    """What pytest's items use, as far as their fixtures and their code tell."""
    known = set(workloads)
    measuring = [item for item in items if "perf_lab" in getattr(item, "fixturenames", ())]
    runs: dict[str, bool] = {}
    calls: set[str] = set()
    for item in measuring:
        names = set(item.fixturenames)
        if "perf_run" in names:
            for workload in _named(item, known):
                runs[workload] = runs.get(workload, False) or "perf_law" in names
        if "perf_load" in names and "perf_shape" not in names:
            calls |= LOAD_CALLS & _words(item) or {"judge_objective"}
    fixtures = frozenset(name for item in measuring for name in item.fixturenames)
    return Wanted(len(measuring), fixtures, tuple(runs.items()), frozenset(calls))


def _named(item: Any, known: set[str]) -> Iterable[str]:
    """The workloads that an item measures: of its cell, or named in its code; all where neither tells."""
    cell = getattr(getattr(item, "callspec", None), "params", {}).get("perf_cell")
    return [cell.workload] if cell is not None else sorted(known & _words(item)) or sorted(known)


def _words(item: Any) -> set[str]:
    """Names and texts in an item's code."""
    code = getattr(getattr(item, "function", None), "__code__", None)
    return set() if code is None else set(_words_of(code))


def _words_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _words_of(constant)


def parts_of(state: PerfState, choice: Choice | None = None) -> list[Part]:
    """What the run asks for, all servers together; ``choice`` says how much is measured where not everything is."""
    choice = choice or Choice()
    workloads = {name: choice.applied(one) for name, one in state.workloads.items()}
    parts = [*_workload_parts(state, workloads, choice)]
    if "perf_load" in state.wanted.fixtures and choice.with_load:
        parts += [*_load_parts(state), *_shape_parts(state)]
    if not parts:
        return []
    return [*_counting_parts(state, choice), *_probe_parts(state), *parts]


def is_paired(state: PerfState) -> bool:
    """Whether the gate compares with a reference that runs at the same time."""
    updating = state.config.getoption("--update-baselines")
    return "perf_gate" in state.wanted.fixtures and state.reference_options() is not None and not updating


def sessions_of(state: PerfState, choice: Choice | None = None) -> tuple[int, int]:
    """Sessions that the gate begins with, and the most it may come to; both 1 without a gate of sessions."""
    take = state.config.getoption
    updating = bool(take("--update-baselines"))
    if "perf_gate" not in state.wanted.fixtures or is_paired(state):
        return 1, 1
    given: int | None = take("--perf-sessions")
    if given is None and updating:
        given = UPDATE_SESSIONS
    first, most = (given, given) if given is not None else (state.policy.first_sessions, state.policy.session_budget)
    if given is None and not store_of(state.config).fingerprints(take("--perf-pinned")):
        first, most = 1, 1  # nothing to compare with
    if choice is not None and choice.sessions is not None:
        first = min(first, choice.sessions)
        most = first
    return first, most


def _workload_parts(state: PerfState, workloads: dict[str, Workload], choice: Choice) -> Iterator[Part]:
    paired = is_paired(state)
    in_sessions = set(workloads) if "perf_gate" in state.wanted.fixtures and not paired else set()
    first, most = sessions_of(state, choice)
    runs, requests = dict(state.wanted.runs), _requests(state, choice)
    for name, workload in workloads.items():
        if name not in runs and name not in in_sessions:
            continue
        times, at_most = (first, most) if name in in_sessions else (1, 1)
        grows = runs.get(name, False) and state.engine_options.requests is None
        title = f"{name}, {times} sessions" if times > 1 else name
        once = spending_of(workload, requests)
        yield Part(title, once, times, at_most + (LAW_ROUNDS - 1 if grows else 0))
    if in_sessions and first > 1:
        yield Part("starts of the engine", NOTHING, first - 1, seconds=state.start_seconds)
    with_sentinel, with_sentinel_at_most = _sentinel_sessions(state, choice)
    if with_sentinel:
        title = f"sentinel, {with_sentinel} session{'s' if with_sentinel > 1 else ''}"
        yield Part(title, spending_of(SENTINEL), with_sentinel, with_sentinel_at_most)
    if paired:
        yield from paired_parts([*workloads.values()], requests, state.blocks)
    if state.config.getoption("--update-baselines") and in_sessions:
        yield Part("the client's own error", NOTHING, seconds=CLIENT_SECONDS)


def _requests(state: PerfState, choice: Choice) -> int | None:
    """Repetitions of every cell that the user asks for, no more than chosen; None where the workloads say."""
    given = state.engine_options.requests
    return given if given is None or choice.requests is None else min(given, choice.requests)


def _sentinel_sessions(state: PerfState, choice: Choice) -> tuple[int, int]:
    """Sessions that measure the sentinel, and the most they may come to; 0 where none does."""
    if "perf_gate" not in state.wanted.fixtures or is_paired(state) or state.sentinel_options() is None:
        return 0, 0
    first, most = sessions_of(state, choice)
    updating = bool(state.config.getoption("--update-baselines"))
    # A first session that there is nothing to compare with is measured for the report alone.
    alone = 0 if updating or store_of(state.config).fingerprints(state.config.getoption("--perf-pinned")) else 1
    return first - alone, most - alone


def _load_parts(state: PerfState) -> Iterator[Part]:
    """Levels, collisions (each with its long prompt once alone and once not), and the search.

    Where an engine with small pieces can be started as well, there are as many collisions again.
    """
    options, calls = state.load_options, state.wanted.calls
    to_prove = max(map(requests_to_prove, options.objectives), default=0)
    if _measures_levels(state):
        asked = options.mix or Mix(((load_workload_named(state, "concurrency"), 1.0),))
        plans = plan_levels(options.levels, asked.requests, to_prove=to_prove, fixed=options.requests)
        yield from _mixed("load", asked, sum(plan.requests for plan in plans))
        yield from _mixed("load, warm-up", asked, asked.warmups)
        yield Part("the client's own error", NOTHING, len(plans), seconds=CLIENT_SECONDS)
        if "judge_limits" in calls and options.find_limit and options.objectives:
            yield from _search(asked, options.requests or requests_wanted(asked.requests, to_prove), options.at_most)
    pieces = "stall_in_pieces" in calls and why_not(state.engine_options) is None
    if "stall" in calls or pieces:
        streams, long_prompt = (load_workload_named(state, one) for one in ("streams", "long-prompt"))
        collisions = long_prompt.requests * (2 if pieces else 1)
        yield Part("load: streams", load_spending(streams, streams.requests), collisions)
        yield Part("load: long-prompt", load_spending(long_prompt, 2), collisions)
        if pieces:
            yield Part("start of an engine with small pieces", NOTHING, seconds=state.start_seconds)


def _measures_levels(state: PerfState) -> bool:
    """Whether levels are measured: the search measures nothing unless it is asked for."""
    options, calls = state.load_options, state.wanted.calls
    searches = "judge_limits" in calls and options.find_limit and bool(options.objectives)
    return bool(calls & {"judge_objective", "batching"}) or searches


def _mixed(name: str, asked: Workload | Mix, requests: int) -> Iterator[Part]:
    parts = asked.parts if isinstance(asked, Mix) else ((asked, 1.0),)
    shares = quotas([weight for _, weight in parts], requests)
    for (workload, _), share in zip(parts, shares, strict=True):
        if share:
            yield Part(f"{name}: {workload.name}", load_spending(workload, share))


def _search(asked: Workload | Mix, requests: int, at_most: int) -> Iterator[Part]:
    """The search halves and doubles, so it visits about twice as many levels as doubling alone, and rates likewise."""
    steps = 2 * max(1, ceil(log2(max(at_most, 2))))
    one = next(_mixed("load: search", asked, max(requests, at_most)))
    yield Part("load: search for the highest load", one.once, steps // 2, 2 * steps)


def _shape_parts(state: PerfState) -> Iterator[Part]:
    """The load of arrivals, where the options ask for one."""
    if "perf_shape" not in state.wanted.fixtures:
        return
    shape = asked_shape(state.config)
    if not shape.is_open:
        return
    asked = state.load_options.mix or load_workload_named(state, "concurrency")
    yield from _mixed("arrivals, warm-up", asked, asked.warmups if shape.warmups is None else shape.warmups)
    if shape.trace is None:
        yield from _mixed("arrivals", asked, shape.count or asked.requests)
        return
    sent = shape.trace.requests[: shape.count]
    tokens = sum(one.input_tokens for one in sent), sum(one.output_tokens for one in sent)
    yield Part("arrivals: trace", Spending(len(sent), *tokens))


def _counting_parts(state: PerfState, choice: Choice) -> Iterator[Part]:
    """The short requests by which prompts of an exact length are learnt, once for each server and endpoint."""
    endpoints = {one.endpoint or state.engine_options.endpoint for one in state.workloads.values()}
    openings = [("", state.engine_options)]
    reference, sentinel = state.reference_options(), state.sentinel_options()
    if reference is not None and is_paired(state):
        openings.append((" of the reference", reference))
    if sentinel is not None and _sentinel_sessions(state, choice)[0]:
        openings.append((" of the sentinel", sentinel))
    for whose, engine_options in openings:
        known = (
            engine_options.base_url is None
            and engine_options.engine in KNOWN_WORDS
            and engine_options.engine_model is None
        )
        spent = counting_spending(COMMON_WORDS, known=known)
        yield Part(f"counting prompt tokens{whose}", spent, len(endpoints))


def _probe_parts(state: PerfState) -> Iterator[Part]:
    """The requests that tell what a request costs, where a budget of time is to be divided."""
    if state.engine_options.traffic.budget is None:
        return
    lengths = probe_lengths([*state.workloads.values()])
    sent = [lengths[0], *lengths]
    yield Part("probes for --perf-budget", Spending(len(sent), sum(n for n, _ in sent), sum(n for _, n in sent)))


def plan_words(state: PerfState, choice: Choice) -> str:
    """What a choice measures, for the sentence of a plan."""
    cells = "requests as in the workload files" if choice.requests is None else f"{choice.requests} requests a cell"
    names = [cells]
    if "perf_gate" in state.wanted.fixtures:
        first, _ = sessions_of(state, choice)
        names.append(f"{LEAST_BLOCKS} blocks" if is_paired(state) else f"{first} session{'s' if first != 1 else ''}")
    if "perf_load" in state.wanted.fixtures:
        names.append("load" if choice.with_load else "no load")
    return ", ".join(names)
