"""The futility-only sequence: who goes on, and what the whole plan would have found."""

from __future__ import annotations

import numpy as np

from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import CompareSettings, Decision, StoredComparison
from phasegate.stats.sequential import needs_more

PLAN = CompareSettings(planned_candidate=5)
STEADY = np.exp(np.random.default_rng(1).normal(0.0, 0.008, 20)).tolist()


def comparison(name: str, candidate: list[float]) -> StoredComparison:
    return StoredComparison(name, "tpot", STEADY, candidate, 0.05)


def open_ones(*comparisons: StoredComparison, budget: int = 5) -> tuple[str, ...]:
    return needs_more(compare_stored(comparisons, PLAN).rows, comparisons, budget)


def test_a_harmless_comparison_stops_and_is_within_by_the_power_of_the_plan() -> None:
    one = comparison("harmless", [0.99, 1.0])
    assert open_ones(one) == ()
    assert compare_stored([one], PLAN).rows[0].decision is Decision.WITHIN


def test_a_suspect_goes_on_and_so_does_what_looks_like_a_regression() -> None:
    assert open_ones(comparison("suspect", [1.01, 1.02])) == ("suspect",)
    assert open_ones(comparison("slower", [1.3, 1.31])) == ("slower",)


def test_one_bad_session_of_two_goes_on() -> None:
    assert open_ones(comparison("one bad", [0.99, 1.4])) == ("one bad",)


def test_the_budget_ends_it() -> None:
    assert open_ones(comparison("suspect", [1.01, 1.02]), budget=2) == ()


def test_without_a_plan_two_sessions_claim_less() -> None:
    one = comparison("harmless", [0.99, 1.0])
    planned, plain = compare_stored([one], PLAN).rows[0], compare_stored([one]).rows[0]
    assert planned.mde is not None
    assert plain.mde is not None
    assert planned.mde < plain.mde
