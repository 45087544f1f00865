"""A law that more requests would decide gets them, and the user is not asked to come back."""

from __future__ import annotations

from pathlib import Path

from tests.edges.quick_pytest import QuickPytest

LAW = "perf_tests/test_prefill.py::test_ttft_rises_with_prompt_length"


def test_an_undecided_law_is_measured_further(quick: QuickPytest, tmp_path: Path) -> None:
    few = "input_tokens: [64, 256, 512]\noutput_tokens: 16\nrequests: 3\n"
    (tmp_path / "prompt-length.yaml").write_text(few, encoding="utf-8")
    options = ("--perf-engine", "simulator", "--perf-engine-config", "speed=8", "--perf-workloads", str(tmp_path))
    enough = quick.run(LAW, *options)
    assert enough.status == 0, enough.output
    assert "6 requests each" in enough.output
    fixed = quick.run(LAW, *options, "--perf-requests", "3")
    assert fixed.status == 13, fixed.output
    assert "3 requests each" in fixed.output
