"""Objectives: parsing, attainment with failures as misses, and the Wilson interval."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.gate.slo import attainment, describe, parse_objective, wilson


def test_an_objective_reads_back_as_it_was_written() -> None:
    objective = parse_objective("ttft:p95:500ms", source="x")
    assert (objective.metric, objective.percentile, objective.limit) == ("ttft", 95.0, 0.5)
    assert objective.text == "ttft:p95:500ms"


@pytest.mark.parametrize("text", "ttft:p95 ttft:95:1s ttft:p0:1s ttft:p100:1s ttft:p95:1 goodput:p95:1s".split())
def test_what_is_not_an_objective_is_refused_with_its_source(text: str) -> None:
    with pytest.raises(ValueError, match="here: "):
        parse_objective(text, source="here")


def test_a_failed_request_is_a_miss_and_infinitely_slow() -> None:
    objective = parse_objective("ttft:p90:1s", source="x")
    found = attainment(objective, [0.5] * 8, failed=2)
    assert (found.kept, found.sent, found.share) == (8, 10, 0.8)
    assert found.value == math.inf
    assert "8 of 10 kept it" in describe(objective, found)


def test_the_wilson_interval_of_known_counts() -> None:
    """8 of 10: 0.4902 to 0.9433 (Wilson 1927 without continuity correction)."""
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 200), st.integers(1, 200))
def test_the_interval_holds_the_share(kept: int, missed: int) -> None:
    low, high = wilson(kept, kept + missed)
    assert 0 <= low <= kept / (kept + missed) <= high <= 1


@given(st.lists(st.floats(0.001, 10), min_size=1, max_size=50), st.integers(0, 5))
def test_one_more_failed_request_never_raises_the_share(samples: list[float], failed: int) -> None:
    objective = parse_objective("ttft:p95:500ms", source="x")
    before, after = attainment(objective, samples, failed), attainment(objective, samples, failed + 1)
    assert after.share <= before.share
    assert after.low <= before.low
    assert after.value is not None
    assert before.value is not None
    assert after.value >= before.value
