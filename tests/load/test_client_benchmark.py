"""The benchmark of the client measures what it says: a late reader is reported as late, by as much."""

import pytest

from benchmarks._client_page import render
from benchmarks.client import Plan, _errors, measure


def report(late: float, stretch: float = 1.0, missing: int = 0) -> dict[str, object]:
    tokens = [10.1 + late + place * 0.02 * stretch for place in range(50 - missing)]
    return {"seen": [{"name": "0", "started": 10.0, "tokens": tokens}], "cpu": 0.005, "memory": 2048}


LOG = {"0": {"name": "0", "arrived": 10.0, "left": [10.1 + place * 0.02 for place in range(50)]}}


@pytest.mark.parametrize("late", [0.0, 0.004, -0.002])
def test_a_reader_that_sees_the_first_token_late_has_that_error(late: float) -> None:
    """Lateness of the first token is TTFT error and no TPOT error."""
    figures = _errors(report(late), LOG, 50)
    assert figures["ttft_p50"] == pytest.approx(late, abs=1e-9)
    assert figures["ttft_p99"] == pytest.approx(late, abs=1e-9)
    assert figures["tpot_p50"] == pytest.approx(0.0, abs=1e-9)
    assert figures["cpu"] == pytest.approx(1e-4)


def test_a_reader_that_stretches_the_stream_has_that_tpot_error() -> None:
    """Gaps 3 % too long are 3 %."""
    assert _errors(report(0.0, stretch=1.03), LOG, 50)["tpot_p50"] == pytest.approx(0.03)


def test_a_late_server_is_not_the_readers_error() -> None:
    """The log is the truth: when the first token left 30 ms late, seeing it 30 ms late is right."""
    log = {"0": {**LOG["0"], "left": [moment + 0.03 for moment in LOG["0"]["left"]]}}  # type: ignore[attr-defined]
    assert _errors(report(0.03), log, 50)["ttft_p50"] == pytest.approx(0.0, abs=1e-9)


def test_the_whole_benchmark_runs_and_no_token_is_lost() -> None:
    """Bare reader and ours in one small run; the figures are real, so only their order of size is checked."""
    trouble: list[str] = []
    bare, ours = measure(["bare", "ours"], Plan(4, 1, 8, 50.0, {}), trouble)
    assert (bare.reader, ours.reader) == ("bare", "ours")
    assert trouble == []
    assert bare.lost == ours.lost == 0
    assert bare.cpu_ratio == 1.0
    assert ours.cpu_per_chunk > 0
    assert -0.01 < ours.ttft_error_p50 < 0.1
    assert "| 4 | ours |" in render([bare, ours], 1)


@pytest.mark.slow
def test_our_client_in_several_processes_is_measured_beside_it() -> None:
    """Its CPU and memory are those of all processes."""
    plan = Plan(4, 1, 8, 50.0, {}, {"ours x2": 2})
    _, several = measure(["bare", "ours x2"], plan, [])
    assert several.reader == "ours x2"
    assert several.lost == 0
    assert several.cpu_per_chunk > 0
    assert -0.01 < several.ttft_error_p50 < 0.1
