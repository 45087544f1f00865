"""``--perf-budget``: a few probe requests, then a plan that fits, then the run is changed accordingly."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from phasegate.budget import BudgetPlan, Probe, Wanted, plan_budget, probe_lengths, request_cost
from phasegate.gate.slo_share import requests_to_prove
from phasegate.lab import Lab, MeasurementError
from phasegate.load.closed import run_closed
from phasegate.load.mix import Mix, quotas
from phasegate.load_plan import plan_levels
from phasegate.metric import Undefined, request_latency
from phasegate.pytest_gate import UPDATE_SESSIONS
from phasegate.pytest_load import load_workload_named
from phasegate.pytest_pieces import why_not
from phasegate.units import parse_duration
from phasegate.wire.decoding import decode
from phasegate.workload import Workload

if TYPE_CHECKING:
    from phasegate.pytest_state import PerfState


def budget_of(state: PerfState) -> float | None:
    """Seconds the user gives, or None.

    Raises:
        ValueError: one line naming the option, its value and what would be right.
    """
    given = state.config.getoption("--perf-budget")
    return None if given is None else parse_duration(given, source="--perf-budget")


def keep_to_budget(state: PerfState, lab: Lab) -> None:
    """Probe the server and shrink what the run will measure until it fits; says what it chose.

    Raises:
        MeasurementError: a probe failed.
    """
    budget = budget_of(state)
    if budget is None:
        return
    lengths = probe_lengths(list(state.workloads.values()))
    _seconds(lab, lengths[0], 0)  # the first request of a server is not like the others
    probes = [Probe(*one, _seconds(lab, one, number)) for number, one in enumerate(lengths, 1)]
    left = max(0.0, budget - (monotonic() - state.started))
    plan = plan_budget(left, request_cost(*probes), wanted_of(state))
    _apply(plan, state)
    lab.plan = plan.reason
    state.say(plan.reason)


def _seconds(lab: Lab, lengths: tuple[int, int], number: int) -> float:
    requests = lab.fresh_requests(lab.endpoint, *lengths, 1, name="budget", first=number)
    result = run_closed(lab.target, requests, max_concurrency=1)
    if result.interrupted:
        raise KeyboardInterrupt
    line = decode(result.recordings[0], lab.target.api_key)
    seconds = request_latency(line)
    if isinstance(seconds, Undefined):
        raise MeasurementError(f"a probe for --perf-budget failed: {line.error_message or seconds.reason}")
    return seconds


def wanted_of(state: PerfState) -> Wanted:
    """What the collected items would measure."""
    measures = state.fixtures & {"perf_run", "perf_gate"}
    first, most = _sessions(state) if "perf_gate" in state.fixtures else (1, 1)
    return Wanted(
        workloads=tuple(state.workloads.values()) if measures else (),
        sessions=first,
        most_sessions=most,
        load=_load(state) if "perf_load" in state.fixtures else (),
    )


def _sessions(state: PerfState) -> tuple[int, int]:
    """Sessions that the gate begins with, and the most it may come to."""
    take = state.config.getoption
    if take("--perf-reference-url") or take("--perf-reference-config") is not None:
        return 2, 2  # both arms measure everything once
    given: int | None = take("--perf-sessions")
    if given is None and take("--update-baselines"):
        given = UPDATE_SESSIONS
    if given is not None:
        return given, given
    return state.policy.first_sessions, state.policy.session_budget


def _load(state: PerfState) -> tuple[tuple[Workload, int], ...]:
    """What load sends: the levels, and the collisions, each with its long prompt once alone and once not.

    Where an engine with small pieces can be started as well, there are as many collisions again.
    """
    streams, long_prompt = (load_workload_named(state, one) for one in ("streams", "long-prompt"))
    options = state.load_options
    asked = options.mix or Mix(((load_workload_named(state, "concurrency"), 1.0),))
    to_prove = max(map(requests_to_prove, options.objectives), default=0)
    plans = plan_levels(options.levels, asked.requests, to_prove=to_prove, fixed=options.requests)
    shares = quotas([weight for _, weight in asked.parts], sum(plan.requests for plan in plans))
    collisions = long_prompt.requests * (1 if why_not(state.opening) else 2)
    return (
        *((workload, share) for (workload, _), share in zip(asked.parts, shares, strict=True)),
        (streams, streams.requests * collisions),
        (long_prompt, 2 * collisions),
    )


def _apply(plan: BudgetPlan, state: PerfState) -> None:
    if plan.requests is not None:
        state.workloads = {
            name: replace(workload, requests=min(plan.requests, workload.requests))
            for name, workload in state.workloads.items()
        }
    if "perf_gate" in state.fixtures and plan.sessions < _sessions(state)[1]:
        state.config.option.perf_sessions = plan.sessions
    state.with_load = plan.with_load
