"""A budget of time is kept by measuring less, in a stated order, and never below what the statistics need."""

from __future__ import annotations

import pytest

from phasegate.core.budget import (
    LEAST_REQUESTS,
    Answered,
    BudgetPlan,
    Choice,
    plan_budget,
    probe_lengths,
    request_cost,
    seconds_of,
)
from phasegate.core.load_plan import plan_levels
from phasegate.core.token_budget import NOTHING, Part, Spending, at_most, in_all, spending_of
from tests.load_runs import small

ANSWERED = [
    Answered(64, 16, 0.1 + 0.064 + 0.01, 0.1 + 0.064 + 0.16),
    Answered(1064, 16, 0.1 + 1.064 + 0.01, 0.1 + 1.064 + 0.16),
    Answered(64, 116, 0.1 + 0.064 + 0.01, 0.1 + 0.064 + 1.16),
]
"""0.1 s, 1 ms a prompt token, 10 ms an output token."""

WORKLOADS = (small("a", 100, 20, requests=12), small("b", 200, 10, requests=8))

LOAD = Part("load", Spending(140, 140 * 64, 140 * 12))


def parts_of(choice: Choice) -> list[Part]:
    """Two sessions of both workloads, and load."""
    measured = [Part(one.name, spending_of(choice.applied(one)), choice.sessions or 2, 5) for one in WORKLOADS]
    return [*measured, LOAD] if choice.with_load else measured


def planned(budget: float) -> BudgetPlan:
    cost = request_cost(ANSWERED)
    assert cost is not None
    return plan_budget(
        budget, lambda choice: seconds_of(parts_of(choice), cost), requests=12, sessions=2, words=lambda one: str(one)
    )


def test_answers_show_what_a_request_costs() -> None:
    cost = request_cost(ANSWERED)
    assert cost is not None
    assert cost.fixed == pytest.approx(0.1)
    assert cost.of(Spending(2, 2000, 200)) == pytest.approx(4.2)


def test_noise_never_makes_a_longer_request_cheaper() -> None:
    cost = request_cost([Answered(64, 16, 0.4, 0.5), Answered(128, 16, 0.3, 0.4), Answered(64, 32, 0.3, 0.4)])
    assert cost is not None
    assert cost.of(Spending(1, 128, 32)) >= cost.of(Spending(1, 64, 16)) > 0


def test_answers_of_one_token_show_no_pace() -> None:
    assert request_cost([Answered(64, 1, 0.1, 0.1)]) is None
    assert request_cost([]) is None


def test_a_large_budget_changes_nothing() -> None:
    assert planned(3600).choice == Choice()


def test_less_time_takes_requests_first_then_sessions_then_load() -> None:
    plans = [planned(budget) for budget in range(90, 1, -1)]
    shown = [(plan.choice.requests, plan.choice.sessions, plan.choice.with_load) for plan in plans]
    assert shown[0] == (None, None, True)
    assert (9, None, True) in shown
    assert shown.index((9, None, True)) < shown.index((LEAST_REQUESTS, 1, True))
    assert shown.index((LEAST_REQUESTS, 1, True)) < shown.index((LEAST_REQUESTS, 1, False))
    assert all(plan.seconds <= budget for plan, budget in zip(plans, range(90, 1, -1), strict=True) if plan.seconds > 8)


def test_a_budget_that_nothing_fits_says_what_the_least_would_take() -> None:
    plan = planned(0.5)
    assert plan.choice.requests == LEAST_REQUESTS
    assert plan.reason.startswith("500 ms left of the budget are too short; the least there is to measure is ")


def test_a_plan_tells_apart_what_is_planned_and_what_it_may_come_to() -> None:
    parts = [Part("a", Spending(2, 20, 10), 3, 5), Part("b", Spending(1, 1, 1)), Part("c", NOTHING, 4, seconds=2.0)]
    assert in_all(parts) == Spending(7, 61, 31)
    assert at_most(parts) == Spending(11, 101, 51)
    cost = request_cost(ANSWERED)
    assert cost is not None
    assert seconds_of(parts[2:], cost) == pytest.approx(8 * 1.15), "starts of an engine take time and ask for nothing"


def test_probes_ask_for_lengths_that_the_workloads_have() -> None:
    assert probe_lengths(WORKLOADS) == ((100, 10), (200, 10), (100, 20))
    assert probe_lengths([small("a", 100, 20)]) == ((100, 20), (101, 20), (100, 21))


def test_levels_get_whole_waves_and_what_objectives_need_but_not_more_than_is_affordable() -> None:
    assert [plan.requests for plan in plan_levels((1, 4, 16), 20)] == [20, 40, 80]
    assert [plan.requests for plan in plan_levels((1, 4, 16), 20, to_prove=59)] == [60, 60, 80]
    assert [plan.requests for plan in plan_levels((1,), 20, to_prove=299)] == [60]
    assert [plan.requests for plan in plan_levels((1,), 20, to_prove=59, fixed=300)] == [300]
