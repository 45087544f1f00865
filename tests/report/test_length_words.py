"""The sentence under the chart of totals says where its line starts only where that is so."""

from __future__ import annotations

import pytest

from phasegate.report.charts.lengths import _fit_words
from phasegate.report.document.model import Fit


@pytest.mark.parametrize(
    ("ttft", "end"),
    [(0.095, "the line starts at 90.0 ms, where TTFT ends."), (0.05, "and TTFT is 50.0 ms."), (None, "at 90.0 ms.")],
)
def test_a_line_that_starts_elsewhere_is_not_said_to_start_where_ttft_ends(ttft: float | None, end: str) -> None:
    """As where a hand-off comes behind the first token."""
    fit = Fit(metric="e2el", over="output tokens - 1", intercept=0.09, slope=0.005, n=10)
    assert _fit_words(fit, "e2el", ttft).endswith(end)
