"""Claims about interference: reading a long prompt holds up the answers of others by a bounded time only."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.perf


def test_a_long_prompt_stalls_running_streams_by_a_bounded_gap(perf_load: Any, perf_law: Any) -> None:
    """The longest gap of any running stream while the long prompt is read, over several collisions."""
    perf_law(perf_load.stall())


def test_reading_prompts_in_small_pieces_shortens_the_stall(perf_load: Any, perf_law: Any) -> None:
    """The same collision on the same engine, started once more with a small batch size."""
    perf_law(perf_load.stall_in_pieces())
