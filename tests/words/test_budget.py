"""A budget of time is kept by measuring less, in a stated order, and never below what the statistics need."""

from __future__ import annotations

import pytest

from phasegate.budget import LEAST_REQUESTS, Probe, Wanted, plan_budget, probe_lengths, request_cost
from phasegate.load_plan import plan_levels
from tests.load_runs import small

COST = request_cost(
    Probe(64, 16, 0.1 + 0.064 + 0.16), Probe(1064, 16, 0.1 + 1.064 + 0.16), Probe(64, 116, 0.1 + 0.064 + 1.16)
)
"""0.1 s, 1 ms a prompt token, 10 ms an output token."""

WANTED = Wanted(
    workloads=(small("a", 100, 20, requests=12), small("b", 200, 10, requests=8)),
    sessions=2,
    most_sessions=3,
    load=((small("concurrency", 64, 12), 140),),
)


def test_three_probes_show_what_a_request_costs() -> None:
    assert COST.fixed == pytest.approx(0.1)
    assert COST.of(1000, 100) == pytest.approx(2.1)


def test_noise_never_makes_a_longer_request_cheaper() -> None:
    cost = request_cost(Probe(64, 16, 0.5), Probe(128, 16, 0.4), Probe(64, 32, 0.4))
    assert cost.of(128, 32) >= cost.of(64, 16) > 0


def test_a_large_budget_changes_nothing() -> None:
    plan = plan_budget(3600, COST, WANTED)
    assert (plan.requests, plan.sessions, plan.with_load) == (None, 3, True)
    assert "requests as in the workload files" in plan.reason


def test_less_time_takes_requests_first_then_sessions_then_load() -> None:
    plans = [plan_budget(budget, COST, WANTED) for budget in range(70, 1, -1)]
    shown = [(plan.requests, plan.sessions, plan.with_load) for plan in plans]
    assert (None, 2, True) in shown
    assert (9, 2, True) in shown
    assert shown.index((9, 2, True)) < shown.index((LEAST_REQUESTS, 1, True)) < shown.index((LEAST_REQUESTS, 1, False))
    assert all(plan.seconds <= budget for plan, budget in zip(plans, range(70, 1, -1), strict=True) if plan.with_load)


def test_a_budget_that_nothing_fits_says_what_the_least_would_take() -> None:
    plan = plan_budget(0.5, COST, WANTED)
    assert plan.requests == LEAST_REQUESTS
    assert plan.reason.startswith(
        "500 ms left of the budget are too short; the least there is to measure is 5 requests a cell"
    )


def test_probes_ask_for_lengths_that_the_workloads_have() -> None:
    assert probe_lengths(WANTED.workloads) == ((100, 10), (200, 10), (100, 20))
    assert probe_lengths([small("a", 100, 20)]) == ((100, 20), (101, 20), (100, 21))


def test_levels_get_whole_waves_and_what_objectives_need_but_not_more_than_is_affordable() -> None:
    assert [plan.requests for plan in plan_levels((1, 4, 16), 20)] == [20, 40, 80]
    assert [plan.requests for plan in plan_levels((1, 4, 16), 20, to_prove=59)] == [60, 60, 80]
    assert [plan.requests for plan in plan_levels((1,), 20, to_prove=299)] == [60]
    assert [plan.requests for plan in plan_levels((1,), 20, to_prove=59, fixed=300)] == [300]
