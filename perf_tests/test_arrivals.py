"""Claims about the load you name: requests that come by a rate, in bursts, on a ramp, or as a trace recorded them."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.perf


def test_objective_is_kept_at_the_asked_load(perf_objective: Any, perf_shape: Any) -> None:
    """The promised share of all requests stays within the limit (--perf-request-rate, --perf-trace)."""
    perf_shape.judge_objective(perf_objective)
