"""What a request costs in time, and which plan fits into a budget of time.

A request costs something fixed, something per prompt token and something per output token; requests that were answered
one at a time show how much. From that follows what a planned run takes. Where it does not fit, requests per cell shrink
first, down to what the statistics need, then sessions, then the load; where even the least does not fit, the plan says
what would, and the run stops at its budget with what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from phasegate.core.token_budget import Part, Spending
from phasegate.core.units import format_seconds
from phasegate.core.workload import Workload

LEAST_REQUESTS = 5
"""Requests of a cell below which no law is decided (`stats.blocks.MIN_BLOCKS`)."""

OVERHEAD = 1.15
"""What a run takes beyond its requests: connections, metrics pages, judging. An allowance."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """Seconds of one request on an idle server: ``fixed + per_input * prompt tokens + per_output * output tokens``."""

    fixed: float
    per_input: float
    per_output: float

    def of(self, asked: Spending) -> float:
        """Seconds of what is asked for, one request after another."""
        return self.fixed * asked.requests + self.per_input * asked.input_tokens + self.per_output * asked.output_tokens


@dataclass(frozen=True, slots=True)
class Answered:
    """One request that was answered while no other ran.

    Attributes:
        input_tokens, output_tokens: its lengths.
        first: seconds from its send to its first token.
        last: seconds from its send to its last token.
    """

    input_tokens: int
    output_tokens: int
    first: float
    last: float


def request_cost(answered: Iterable[Answered]) -> RequestCost | None:
    """The cost that answered requests show; a longer request is never taken to be cheaper.

    None where no answer had two tokens, so that nothing is known of the time per token.
    """
    firsts: dict[int, list[float]] = {}
    paces = []
    for one in answered:
        firsts.setdefault(one.input_tokens, []).append(one.first)
        if one.output_tokens > 1:
            paces.append((one.last - one.first) / (one.output_tokens - 1))
    if not paces:
        return None
    short, long = min(firsts), max(firsts)
    low, high = median(firsts[short]), median(firsts[long])
    per_input = max(0.0, (high - low) / (long - short)) if long > short else 0.0
    per_output = max(0.0, median(paces))
    return RequestCost(max(0.0, low - per_input * short - per_output), per_input, per_output)


def seconds_of(parts: Iterable[Part], cost: RequestCost) -> float:
    """What parts of a plan take, load as if one request went after the other: a server that batches is faster."""
    return OVERHEAD * sum(cost.of(part.planned) + part.times * part.seconds for part in parts)


@dataclass(frozen=True, slots=True)
class Choice:
    """How much is measured.

    Attributes:
        requests: of every cell at most; None leaves each workload as it is.
        sessions: of the gate; None as many as it begins with.
        with_load: whether load is measured.
    """

    requests: int | None = None
    sessions: int | None = None
    with_load: bool = True

    def applied(self, workload: Workload) -> Workload:
        """The workload with no more requests than chosen."""
        return workload if self.requests is None else workload.with_requests(min(self.requests, workload.requests))


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """What is measured instead of everything.

    Attributes:
        choice: how much.
        seconds: what that is expected to take.
        reason: the plan in one sentence with its numbers.
    """

    choice: Choice
    seconds: float
    reason: str


def plan_budget(
    budget: float, seconds: Callable[[Choice], float], *, requests: int, sessions: int, words: Callable[[Choice], str]
) -> BudgetPlan:
    """The largest plan that fits into ``budget`` seconds; the smallest there is where none fits.

    Args:
        budget: seconds that are left.
        seconds: what a choice takes.
        requests: the most of any cell.
        sessions: that the gate begins with; 1 where it has none.
        words: what a choice measures, for the sentence.
    """
    choices = [Choice()]
    choices += [Choice(n) for n in range(requests - 1, LEAST_REQUESTS - 1, -1)]
    least = min(LEAST_REQUESTS, requests)
    choices += [Choice(least, n) for n in range(sessions - 1, 0, -1)]
    choices += [Choice(least, 1 if sessions > 1 else None, with_load=False)]
    for choice in choices:
        took = seconds(choice)
        if took <= budget:
            break
    said = f"{words(choice)}: about {format_seconds(took)}"
    if took > budget:
        said = f"are too short; the least there is to measure is {said}, so some of it will be left undecided"
        return BudgetPlan(choice, took, f"{format_seconds(budget)} left of the budget {said}")
    return BudgetPlan(choice, took, f"{format_seconds(budget)} left of the budget: {said}")


def probe_lengths(workloads: Sequence[Workload]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Lengths of the three probes: short, long prompt, long answer; from what the workloads ask anyway."""
    inputs = sorted({n for workload in workloads for n in workload.input_tokens})
    outputs = sorted({n for workload in workloads for n in workload.output_tokens})
    low_in, high_in = inputs[0], max(inputs[-1], inputs[0] + 1)
    low_out, high_out = outputs[0], max(outputs[-1], outputs[0] + 1)
    return (low_in, low_out), (high_in, low_out), (low_in, high_out)
