"""Runs of a workload: what enters a sample, what is counted instead, and when a run must not be judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from phasegate.core.timeline import Timeline
from phasegate.core.workload import Planned, parse_workload
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.timelines import failed, timeline

WORKLOAD = parse_workload("input_tokens: [64, 256]\noutput_tokens: 5\nrequests: 3\nendpoint: chat\n", "w.yaml")
SHORT, LONG = WORKLOAD.cells


def run_of(*columns: Sequence[Timeline]) -> WorkloadRun:
    """A run whose columns are the cells of the workload and whose rows are its blocks."""
    measured = [
        Measured(Planned(cell, block, cell.input_tokens, 5, f"{cell}/{block}", None, cold=True), line)
        for cell, lines in zip(WORKLOAD.cells, columns, strict=True)
        for block, line in enumerate(lines)
    ]
    return WorkloadRun(WORKLOAD, tuple(measured))


def test_values_are_kept_by_block() -> None:
    run = run_of([timeline(0.1), timeline(0.2), timeline(0.3)], [timeline(0.5)] * 3)
    assert run.values("ttft", SHORT) == pytest.approx({0: 0.1, 1: 0.2, 2: 0.3})
    assert run.paired("ttft", [SHORT, LONG]).shape == (3, 2)
    assert run.problem() is None


def test_a_failed_request_leaves_the_sample_and_its_block_leaves_the_pairs() -> None:
    run = run_of([timeline(0.1), failed(), timeline(0.3)], [timeline(0.5)] * 3)
    assert run.values("ttft", SHORT) == pytest.approx({0: 0.1, 2: 0.3})
    assert run.paired("ttft", [SHORT, LONG]).ravel().tolist() == pytest.approx([0.1, 0.5, 0.3, 0.5])
    assert run.failures() == {"http_500": 1}


def test_too_many_failures_make_the_run_invalid_and_the_servers_words_are_told() -> None:
    run = run_of([failed(), timeline(), timeline()], [timeline()] * 3)
    problem = run.problem()
    assert problem is not None
    assert "1 of 6 requests failed (1 x http_500); the first said: broken" in problem


def test_one_failure_in_a_hundred_does_not_make_the_run_invalid() -> None:
    run = run_of([failed(), *[timeline()] * 49], [timeline()] * 50)
    assert run.problem() is None


def test_answers_that_are_unfit_are_counted_by_their_flag() -> None:
    warm = timeline(sample_valid=False, flags=("cached_prompt",))
    run = run_of([warm] * 3, [warm, timeline(), timeline()])
    assert run.unfit() == {"cached_prompt": 4}
    assert run.values("ttft", SHORT) == {}
    assert "4 of 6 answers are unfit" in (run.problem() or "")


def test_an_empty_run_must_not_be_judged() -> None:
    assert "nothing was measured" in (WorkloadRun(WORKLOAD, ()).problem() or "")


def test_measurements_count_what_they_leave_out() -> None:
    warm = timeline(sample_valid=False, flags=("cached_prompt",))
    run = run_of([timeline(0.1), failed(), warm], [timeline()] * 3)
    ttft = next(one for one in run.measurements() if one.workload == SHORT.label and one.metric == "ttft")
    assert ttft.samples == pytest.approx((0.1,))
    assert (ttft.requests, ttft.failed, ttft.invalid) == (3, 1, 1)
    assert ttft.flags == ("cached_prompt",)
    assert ttft.token_source is None
    tpot = next(one for one in run.measurements() if one.workload == SHORT.label and one.metric == "tpot")
    assert tpot.token_source == "usage"


def test_counts_that_are_disproved_in_most_answers_of_a_cell_are_named_and_ttft_is_kept() -> None:
    """TPOT has no value there, TTFT has, and the run is not refused as a whole."""
    lie = timeline(flags=("usage_inconsistent",), output_tokens=2)
    run = run_of([lie, lie, timeline()], [timeline()] * 3)
    said = run.disproved()
    assert said is not None
    assert "usage counts 2 tokens where 5 token events came (2 of 6 answers)" in said
    assert len(run.values("ttft", SHORT)) == 3
    assert list(run.values("tpot", SHORT)) == [2]
    assert run.problem() is None
    assert run_of([lie, timeline(), timeline()], [timeline()] * 3).disproved() is None
