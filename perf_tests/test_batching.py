"""Claims about batching: streams that are answered together share the reading of the weights."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.perf


def test_batching_amortises_decode(perf_batch_level: int, perf_load: Any, perf_law: Any) -> None:
    """Several users at a time get surely more tokens a second in all than one user does."""
    result = perf_load.batching(perf_batch_level)
    perf_load.inform_only(result)
    perf_law(result)
