"""TTFT and TPOT of every workload as rows of pytest-benchmark: its tables, files, histograms and `compare` work."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.core.metric import metric_named
from phasegate.core.workload import Cell

pytestmark = pytest.mark.perf


@pytest.mark.parametrize("metric", ["ttft", "tpot"])
def test_row(perf_cell: Cell, metric: str, perf_run: Any, perf_row: Any) -> None:
    """The samples of one metric in one cell, replayed into pytest-benchmark."""
    run = perf_run(perf_cell.workload)
    perf_row(run, perf_cell, metric_named(metric))
