"""``--perf-budget``: a few probe requests, then a plan that fits, then the run is changed accordingly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from phasegate.core.budget import Choice, plan_budget, probe_lengths, seconds_of
from phasegate.core.metric import Undefined, request_latency
from phasegate.core.token_budget import LimitReachedError, at_most, in_all
from phasegate.core.units import format_seconds
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.pytest_plugin.plan import parts_of, plan_words, sessions_of

if TYPE_CHECKING:
    from phasegate.pytest_plugin.state import PerfState


def make_plan(state: PerfState, runner: SessionRunner) -> None:
    """Say what the run intends to ask for; with a budget of time, shrink it until it fits.

    Raises:
        MeasurementError: a probe failed.
    """
    traffic = state.engine_options.traffic
    traffic.planned = in_all(parts_of(state))
    if traffic.budget is None or not state.wanted.items:
        return
    try:
        _probe(state, runner)
    except LimitReachedError:
        return  # so will the first item, and say so
    cost, left = traffic.cost, traffic.time_left
    if cost is None or left is None:
        return
    begun = traffic.sent
    cells = [one.requests for one in state.workloads.values()]
    most = state.engine_options.requests or max(cells, default=1)
    plan = plan_budget(
        left,
        lambda choice: max(0.0, seconds_of(parts_of(state, choice), cost) - cost.of(begun)),
        requests=most,
        sessions=sessions_of(state)[0],
        words=lambda choice: plan_words(state, choice),
    )
    _apply(plan.choice, state, runner)
    traffic.planned = in_all(parts_of(state, plan.choice))
    runner.plan = plan.reason


def _probe(state: PerfState, runner: SessionRunner) -> None:
    lengths = probe_lengths([*state.workloads.values()])
    # Twice the first: the first request of a server is not like the others.
    for number, (n_in, n_out) in enumerate((lengths[0], *lengths)):
        requests = runner.fresh_requests(runner.endpoint, n_in, n_out, 1, name="budget", first=number)
        result, lines, cut = runner.send(requests)
        if result.interrupted:
            raise KeyboardInterrupt
        if cut is not None:
            raise LimitReachedError(cut)
        seconds = request_latency(lines[0])
        if isinstance(seconds, Undefined):
            said = lines[0].error_message or seconds.reason
            raise MeasurementError(f"a probe for --perf-budget failed: {said}")


def _apply(choice: Choice, state: PerfState, runner: SessionRunner) -> None:
    state.choice = choice
    if choice.requests is not None:
        state.workloads = {name: choice.applied(workload) for name, workload in state.workloads.items()}
        if state.engine_options.requests is not None:
            runner.requests = min(state.engine_options.requests, choice.requests)
            state.engine_options = replace(state.engine_options, requests=runner.requests)
    if choice.sessions is not None:
        state.config.option.perf_sessions = choice.sessions
    state.with_load = choice.with_load


def plan_line(state: PerfState) -> str | None:
    """The plan in one line, with its time as soon as the first answers have shown the server's pace; None before."""
    traffic = state.engine_options.traffic
    cost, ahead = traffic.cost, traffic.seconds_ahead
    if cost is None or ahead is None:
        return None
    parts = parts_of(state, state.choice)
    planned, most = in_all(parts), at_most(parts)
    about = traffic.elapsed + ahead + sum(part.times * part.seconds for part in parts)
    line = (
        f"plan: {state.wanted.items} items, {planned.requests:,} requests, {planned.tokens:,} tokens, "
        f"about {format_seconds(about)}"
    )
    more = cost.of(most) - cost.of(planned)
    if traffic.budget is not None:
        return f"{line}; ends at {format_seconds(traffic.budget)} (--perf-budget)"
    if more > about * 0.1:
        return f"{line}, up to {format_seconds(about + more)} while something stays undecided (--perf-budget ends it)"
    return line
