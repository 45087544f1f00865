"""Claims about the prefix cache: what was read once need not be read again, and nothing else gets faster."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.stats import laws

pytestmark = pytest.mark.perf


@pytest.mark.parametrize(
    ("workload", "before", "after"),
    [("prefix-cache", "cold", "cached"), ("shared-prefix", "first", "next")],
    ids=["same prompt again", "same prefix, new suffix"],
)
def test_a_cached_prefix_makes_the_next_call_faster(
    workload: str, before: str, after: str, perf_run: Any, perf_law: Any
) -> None:
    """TTFT falls when the prompt's beginning was read before, and does not fall for a new prompt of equal length."""
    run = perf_run(workload)
    cells = [run.cell(role) for role in (before, after, "control")]
    cold, cached, control = run.paired("ttft", cells).T
    perf_law(
        laws.cached_faster(
            cold,
            cached,
            control,
            cached_tokens=run.cached_tokens(run.cell(after)),
            known_miss=run.known_miss,
            law=f"a cached prefix is faster ({before} -> {after})",
        )
    )
