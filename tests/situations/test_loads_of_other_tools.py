"""What makes a workload of another tool's result: model, endpoint, load and lengths; a sweep is many workloads."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli.compare import compare
from phasegate.core.session import Session
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Verdict
from phasegate.store.other_tools.reading import load, read_side, sides_of
from tests.interop import foreign


def workloads(sessions: list[Session]) -> set[str]:
    return {one.workload for session in sessions for one in session.measurements}


def test_runs_of_two_concurrencies_are_two_workloads(tmp_path: Path) -> None:
    """gate/aiperf_concurrency_lost: a run of 2 and one of 12 streams were compared as one workload."""
    two = foreign.write(tmp_path / "a.json", foreign.aiperf_summary(2))
    twelve = foreign.write(tmp_path / "b.json", foreign.aiperf_summary(12))
    found = compare(two, twelve, Policy())
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "aiperf[endpoint=chat,in=100,out=16,concurrency=2]" in found.reason
    assert "aiperf[endpoint=chat,in=100,out=16,concurrency=12]" in found.reason


def test_repeated_runs_of_one_point_are_sessions_and_points_are_workloads(tmp_path: Path) -> None:
    """gate/aiperf_concurrency_lost, as one folder: three runs of each of two loads are three sessions of both."""
    for run in range(3):
        for concurrency in (2, 12):
            name = f"c{concurrency}_run{run}.json"
            foreign.write(tmp_path / "old" / name, foreign.aiperf_summary(concurrency, run=run))
    sessions = read_side(tmp_path / "old")
    assert len(sessions) == 3
    assert all(len(workloads([one])) == 2 for one in sessions)
    found = compare(tmp_path / "old", tmp_path / "old", Policy())
    assert not any("was measured in" in line for line in found.warnings)


@pytest.mark.parametrize(
    "layout",
    [
        "concurrency_{c}/profile_export.jsonl",
        "phases.profiling.concurrency={c}/profile_runs/run_0001/profile_export.jsonl",
        "profile_runs/trial_0001/concurrency_{c}/profile_export.jsonl",
        "sweep-concurrency-{c}/profile_export.jsonl",
    ],
)
def test_a_sweep_of_folders_without_summaries_is_many_workloads(tmp_path: Path, layout: str) -> None:
    """gate/aiperf_sweep: its folders were sessions of one workload."""
    for concurrency in (2, 12):
        foreign.write(tmp_path / layout.format(c=concurrency), foreign.aiperf_records(concurrency))
    sessions = read_side(tmp_path)
    assert workloads(sessions) == {f"aiperf[in=100,out=16,concurrency={c}]" for c in (2, 12)}
    assert len(sessions) == 1


def test_trials_of_a_sweep_are_sessions(tmp_path: Path) -> None:
    for trial in (1, 2, 3):
        for concurrency in (2, 12):
            path = tmp_path / f"profile_runs/trial_{trial:04d}/concurrency_{concurrency}/profile_export.jsonl"
            foreign.write(path, foreign.aiperf_records(10 * trial + concurrency))
    foreign.write(tmp_path / "aggregate/concurrency_2/profile_export_aiperf_aggregate.json", {"metadata": {}})
    foreign.write(tmp_path / "sweep_aggregate/profile_export_aiperf_sweep.json", {"metadata": {}})
    sessions = read_side(tmp_path)
    assert len(sessions) == 3
    assert all(len(workloads([one])) == 2 for one in sessions)


def test_records_take_their_load_from_the_summary_beside_them(tmp_path: Path) -> None:
    foreign.write(tmp_path / "profile_export.jsonl", foreign.aiperf_records(1))
    foreign.write(tmp_path / "profile_export_aiperf.json", foreign.aiperf_summary(7))
    foreign.write(tmp_path / "inputs.json", {"data": []})
    (one,) = read_side(tmp_path)
    assert workloads([one]) == {"aiperf[endpoint=chat,in=100,out=16,concurrency=7]"}
    assert one.server == {"model": "tiny"}


def test_a_closed_loop_shows_by_its_requests_in_flight(tmp_path: Path) -> None:
    """Nothing names the load: four requests are always in flight, or twelve."""
    for streams in (4, 12):
        records = []
        for number in range(5 * streams):
            begun = int(1.7e18) + (number // streams) * 1_000_000_000
            times = {"request_start_ns": begun, "request_end_ns": begun + 990_000_000}
            records.append(foreign.aiperf_record(number, ttft=50.0, gap=8.0, **times))
        foreign.write(tmp_path / f"{'ab'[streams > 4]}.jsonl", records)
    assert workloads(read_side(tmp_path)) == {f"aiperf[in=100,out=16,concurrency={c}]" for c in (4, 12)}


def test_another_model_is_not_comparable(tmp_path: Path) -> None:
    old = foreign.write(tmp_path / "a.json", foreign.aiperf_summary(2))
    new = foreign.write(tmp_path / "b.json", foreign.aiperf_summary(2, model="other"))
    found = compare(old, new, Policy())
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "model: tiny -> other" in found.reason


@pytest.mark.parametrize(
    "change",
    [{"backend": "vllm"}, {"max_concurrency": 8}, {"request_rate": 3.0}, {"request_rate": 3.0, "burstiness": 0.5}],
)
def test_another_endpoint_or_load_of_vllm_is_another_workload(tmp_path: Path, change: dict[str, Any]) -> None:
    old = foreign.write(tmp_path / "a.json", foreign.vllm(1))
    new = foreign.write(tmp_path / "b.json", {**foreign.vllm(2), **change})
    assert compare(old, new, Policy()).verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize("lengths", [{"inputs": 1024}, {"outputs": 64}, {"inputs": 640}])
def test_other_lengths_are_another_workload(tmp_path: Path, lengths: dict[str, int]) -> None:
    old = foreign.write(tmp_path / "a.json", foreign.vllm(1))
    new = foreign.write(tmp_path / "b.json", foreign.vllm(2, **lengths))
    assert compare(old, new, Policy()).verdict is Verdict.NOT_COMPARABLE


def test_a_number_is_one_number_however_it_is_written(tmp_path: Path) -> None:
    document = foreign.vllm(1)
    changes: list[dict[str, Any]] = [{"max_concurrency": "4"}, {"max_concurrency": 4.0}, {"request_rate": float("inf")}]
    for index, change in enumerate(changes):
        foreign.write(tmp_path / f"{index}.json", {**document, **change, "date": str(index)})
    assert len(workloads(read_side(tmp_path))) == 1


def test_rates_that_a_sweep_of_guidellm_found_out_may_differ_a_little(tmp_path: Path) -> None:
    """A sweep measures which rates to send at, so no two sweeps have the same."""
    sides = []
    for side in ("old", "new"):
        document = foreign.guidellm(len(side) + ord(side[0]), streams=(1, 2, 4), sweep=True)
        sides.append(load(foreign.write(tmp_path / f"{side}.json", document)))
    old, new = sides_of(*sides)
    assert workloads(old) == workloads(new)
    assert len(workloads(old)) == 3


def test_two_benchmarks_of_one_load_in_one_file_stay_two(tmp_path: Path) -> None:
    sessions = read_side(foreign.write(tmp_path / "g.json", foreign.guidellm(1, streams=(4, 4))))
    assert len(workloads(sessions)) == 2
    assert len(sessions) == 1


def test_a_run_given_twice_is_remarked(tmp_path: Path) -> None:
    for name in ("a.json", "copy.json"):
        foreign.write(tmp_path / "old" / name, foreign.vllm(1))
    found = compare(tmp_path / "old", foreign.write(tmp_path / "new.json", foreign.vllm(2)), Policy())
    assert any("copy.json: it holds the same values as" in line for line in found.warnings)


def test_one_run_in_several_formats_is_one_session(tmp_path: Path) -> None:
    document = foreign.guidellm(1)
    foreign.write(tmp_path / "benchmarks.json", document)
    (tmp_path / "benchmarks.yaml").write_text(json.dumps(foreign.guidellm(1)).replace('"benchmarks"', "\nbenchmarks"))
    (tmp_path / "benchmarks.csv").write_text("Run Info,Benchmark,Request Latency\n")
    (tmp_path / "policy.yaml").write_text("alpha: 0.01\n")
    assert len(read_side(tmp_path)) == 1


def test_records_and_summary_of_one_run_under_own_names_are_one_session(tmp_path: Path) -> None:
    foreign.write(tmp_path / "mine.jsonl", foreign.aiperf_records(1))
    foreign.write(tmp_path / "mine_aiperf.json", foreign.aiperf_summary(3))
    assert workloads(read_side(tmp_path)) == {"aiperf[endpoint=chat,in=100,out=16,concurrency=3]"}


def test_runs_appended_to_one_file_are_sessions(tmp_path: Path) -> None:
    """vLLM's --append-result writes lines into a file named .json."""
    path = tmp_path / "all.json"
    path.write_text("\n".join(json.dumps(foreign.vllm(run)) for run in range(3)))
    assert len(read_side(path)) == 3


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(json.dumps(foreign.vllm(1)).encode()))
    assert len(read_side(tmp_path)) == 1
    path.write_bytes(path.read_bytes()[:60])
    assert compare(path, path, Policy()).verdict is Verdict.INVALID_BASELINE


def test_a_folder_of_folders_of_results_is_refused_with_their_names(tmp_path: Path) -> None:
    for name in ("before", "after"):
        foreign.folder(tmp_path / name, foreign.vllm, runs=1)
    with pytest.raises(ValueError, match="holds folders of sessions; name one of them: after, before"):
        read_side(tmp_path)
