"""Claims about prefill: it reads the whole prompt before the first token, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.stats import laws

pytestmark = pytest.mark.perf


def test_ttft_rises_with_prompt_length(perf_run: Any, perf_law: Any) -> None:
    """TTFT rises with the length of the prompt: prefill reads all of it before the first token."""
    run = perf_run("prompt-length")
    cells = run.workload.cells
    perf_law(
        laws.rises(
            [cell.input_tokens for cell in cells],
            run.paired("ttft", cells),
            law="TTFT rises with prompt length",
        )
    )


def test_ttft_is_flat_in_output_length(perf_run: Any, perf_law: Any) -> None:
    """TTFT does not depend on how long the answer will be: prefill knows nothing of it."""
    run = perf_run("output-length")
    cells = run.workload.cells
    perf_law(
        laws.flat(
            [cell.output_tokens for cell in cells],
            run.paired("ttft", cells),
            margin=laws.TTFT_FLAT_MARGIN,
            law="TTFT is flat in output length",
        )
    )
