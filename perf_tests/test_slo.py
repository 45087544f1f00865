"""Claims about service levels: so many users at a time still get their tokens in time."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.perf


def test_objective_is_kept(perf_level: int, perf_objective: Any, perf_load: Any) -> None:
    """The promised share of all requests, failures included, stays within the limit at this concurrency."""
    perf_load.judge_objective(perf_level, perf_objective)


def test_highest_load_that_keeps_every_objective(perf_load: Any) -> None:
    """The search finds how many users, and how many requests a second, each objective bears, and why no more."""
    perf_load.judge_limits()
