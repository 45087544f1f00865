"""Claims about change: this server is no slower than the accepted one, in either phase of any cell."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.core.workload import Cell

pytestmark = pytest.mark.perf


@pytest.mark.parametrize("metric", ["ttft", "tpot"])
def test_no_regression(perf_cell: Cell, metric: str, perf_gate: Any) -> None:
    """One metric of one cell, against stored sessions or against a reference measured beside it."""
    perf_gate.judge(perf_cell.label, metric)


def test_everything_the_baseline_knows_was_measured(perf_gate: Any) -> None:
    """A workload that the baseline knows and this run lacks is a failure, not a silence."""
    perf_gate.judge_whole()
