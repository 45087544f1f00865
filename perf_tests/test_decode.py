"""Claims about decode: every token costs about the same, however many there are and however long the prompt was."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.stats import laws

pytestmark = pytest.mark.perf


def test_tpot_is_flat_in_output_length(perf_run: Any, perf_law: Any) -> None:
    """A token of a long answer costs as much as one of a short answer."""
    run = perf_run("output-length")
    cells = run.workload.cells
    perf_law(
        laws.flat_decode(
            [cell.output_tokens for cell in cells],
            run.paired("tpot", cells),
            first=run.first_event(),
            margin=laws.TPOT_FLAT_MARGIN,
            law="TPOT is flat in output length",
        )
    )


def test_tpot_hardly_grows_with_prompt_length(perf_run: Any, perf_law: Any) -> None:
    """A longer prompt makes each token dearer only by its share of the KV cache: within a stated slope."""
    run = perf_run("prompt-length")
    cells = run.workload.cells
    perf_law(
        laws.bounded_slope(
            [cell.input_tokens for cell in cells],
            run.paired("tpot", cells),
            law="TPOT grows with prompt length within its bound",
        )
    )


def test_total_is_linear_in_output_length(perf_run: Any, perf_law: Any) -> None:
    """total = TTFT + TPOT x (N - 1): a straight line whose intercept is TTFT and whose slope is TPOT."""
    run = perf_run("output-length")
    cells = run.workload.cells
    perf_law(
        laws.linear(
            [cell.output_tokens for cell in cells],
            run.paired("e2el", cells),
            ttft=run.paired("ttft", cells),
            tpot=run.paired("tpot", cells),
            first=run.first_event(),
            law="total is linear in output length",
        )
    )


def test_no_stalls_inside_a_stream(perf_run: Any, perf_law: Any) -> None:
    """Once a stream flows, no gap inside it is far longer than the others."""
    run = perf_run("output-length")
    perf_law(laws.no_stalls(run.gaps(), law="no stalls inside a stream"))
