"""What fits into a budget of time: requests per cell, sessions, and requests per level of load.

A few probe requests tell what a request costs: something fixed, something per prompt token, something per output token.
From that follows what the planned run would take. Where it does not fit, requests per cell shrink first, down to what
the statistics need, then sessions, then the load; where even the least does not fit, the plan says what would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.units import format_seconds
from phasegate.workload import Workload

LEAST_REQUESTS = 5
"""Requests of a cell below which no law is decided (`stats.blocks.MIN_BLOCKS`)."""

OVERHEAD = 1.15
"""What a run takes beyond its requests: engines started again, warm-ups, connections, judging. An allowance."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """Seconds of one request on an idle server: ``fixed + per_input * prompt tokens + per_output * output tokens``."""

    fixed: float
    per_input: float
    per_output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Seconds of a request of these lengths."""
        return self.fixed + self.per_input * input_tokens + self.per_output * output_tokens


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe request: its lengths and the seconds it took."""

    input_tokens: int
    output_tokens: int
    seconds: float


def request_cost(short: Probe, long_prompt: Probe, long_answer: Probe) -> RequestCost:
    """The cost that three probes show; a longer request is never taken to be cheaper.

    Raises:
        ValueError: a probe is not longer than the short one where it should be.
    """
    more_in = long_prompt.input_tokens - short.input_tokens
    more_out = long_answer.output_tokens - short.output_tokens
    if more_in <= 0 or more_out <= 0:
        raise ValueError("probes of a cost need a longer prompt and a longer answer than the short one")
    per_input = max(0.0, (long_prompt.seconds - short.seconds) / more_in)
    per_output = max(0.0, (long_answer.seconds - short.seconds) / more_out)
    fixed = short.seconds - per_input * short.input_tokens - per_output * short.output_tokens
    return RequestCost(max(0.0, fixed), per_input, per_output)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the run would measure without a budget.

    Attributes:
        workloads: measured once in every session.
        sessions: sessions that the gate begins with, at least 1.
        most_sessions: sessions that it may come to while comparisons are open.
        load: what is sent under load, as workload and number of requests.
    """

    workloads: tuple[Workload, ...]
    sessions: int
    most_sessions: int
    load: tuple[tuple[Workload, int], ...]


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """What is measured instead.

    Attributes:
        requests: of every cell; None leaves each workload as it is.
        sessions: of the gate.
        with_load: whether load is measured.
        seconds: what that is expected to take.
        reason: the plan in one sentence with its numbers.
    """

    requests: int | None
    sessions: int
    with_load: bool
    seconds: float
    reason: str


def plan_budget(budget: float, cost: RequestCost, wanted: Wanted) -> BudgetPlan:
    """The largest plan that fits into ``budget`` seconds; the smallest there is where none fits."""
    most = max((workload.requests for workload in wanted.workloads), default=LEAST_REQUESTS)
    choices: list[tuple[int | None, int, bool]] = [
        (None, n, True) for n in range(wanted.most_sessions, wanted.sessions - 1, -1)
    ]
    choices += [(n, wanted.sessions, True) for n in range(most - 1, LEAST_REQUESTS - 1, -1)]
    choices += [(LEAST_REQUESTS, n, True) for n in range(wanted.sessions - 1, 0, -1)]
    choices += [(LEAST_REQUESTS, 1, False)]
    for requests, sessions, with_load in choices:
        seconds = _seconds(cost, wanted, requests, sessions, with_load=with_load)
        if seconds <= budget:
            break
    return BudgetPlan(requests, sessions, with_load, seconds, _reason(budget, seconds, requests, sessions, with_load))


def _seconds(cost: RequestCost, wanted: Wanted, requests: int | None, sessions: int, *, with_load: bool) -> float:
    session = sum(_workload_seconds(cost, workload, requests) for workload in wanted.workloads)
    total = sessions * session
    if with_load:
        # As if one after another: a server that batches is faster, and one that does not is not slower.
        total += sum(_workload_seconds(cost, workload, None) / workload.requests * n for workload, n in wanted.load)
    return total * OVERHEAD


def _workload_seconds(cost: RequestCost, workload: Workload, requests: int | None) -> float:
    repeats = workload.requests if requests is None else min(requests, workload.requests)
    return repeats * sum(cost.of(cell.input_tokens, cell.output_tokens) for cell in workload.cells)


def _reason(budget: float, seconds: float, requests: int | None, sessions: int, with_load: bool) -> str:
    cells = "requests as in the workload files" if requests is None else f"{requests} requests a cell"
    load = "load" if with_load else "no load"
    plan = f"{cells}, {sessions} session{'s' if sessions != 1 else ''}, {load}: about {format_seconds(seconds)}"
    if seconds > budget:
        return f"{format_seconds(budget)} left of the budget are too short; the least there is to measure is {plan}"
    return f"{format_seconds(budget)} left of the budget: {plan}"


def probe_lengths(workloads: Sequence[Workload]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Lengths of the three probes: short, long prompt, long answer; from what the workloads ask anyway."""
    inputs = sorted({n for workload in workloads for n in workload.input_tokens})
    outputs = sorted({n for workload in workloads for n in workload.output_tokens})
    low_in, high_in = inputs[0], max(inputs[-1], inputs[0] + 1)
    low_out, high_out = outputs[0], max(outputs[-1], outputs[0] + 1)
    return (low_in, low_out), (high_in, low_out), (low_in, high_out)
