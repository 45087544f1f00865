"""Files that hold medians only: one value a session, what cannot be judged is said, and refusals name a better file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from phasegate.cli.compare import compare
from phasegate.gate.policy import Policy
from phasegate.gate.slo import parse_objective
from phasegate.gate.verdict import Verdict
from phasegate.store.other_tools.reading import read_side
from phasegate.store.other_tools.result import UnreadableResultError
from tests.interop import foreign


def vllm(run: int, **options: Any) -> dict[str, Any]:
    return foreign.without_requests(foreign.vllm(run, **options))


def sglang(run: int, **options: Any) -> dict[str, Any]:
    return foreign.without_requests(foreign.sglang(run, **options))


MAKERS: dict[str, Callable[..., dict[str, Any]]] = {
    "vllm": vllm,
    "sglang": sglang,
    "guidellm": foreign.guidellm_medians,
    "inferencex": foreign.inferencex,
    "trtllm": foreign.trtllm,
    "aiperf": lambda run, **options: foreign.aiperf_summary(4, run=run, **options),
}


@pytest.mark.parametrize("tool", MAKERS)
def test_medians_are_compared_as_one_value_a_session(tmp_path: Path, tool: str) -> None:
    make = MAKERS[tool]
    old = foreign.folder(tmp_path / "old", make)
    same = compare(old, foreign.folder(tmp_path / "same", make, first=20), Policy())
    assert same.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    assert same.findings[0].baseline_sessions == 8
    assert any("only medians in it" in line for line in same.warnings)
    slow = compare(old, foreign.folder(tmp_path / "slow", lambda run: make(run, speed=1.3), first=20), Policy())
    assert slow.verdict is Verdict.REGRESSION


@pytest.mark.parametrize("tool", MAKERS)
def test_what_medians_cannot_prove_is_undecided(tmp_path: Path, tool: str) -> None:
    """A p95 of medians is none, and failures are no misses among so few values."""
    side = foreign.folder(tmp_path / "a", MAKERS[tool])
    loose = replace(Policy(), slos=(parse_objective("ttft:p95:60s", source="here"),))
    (row,) = [row for row in compare(side, side, loose).findings if row.metric.startswith("ttft:p95")]
    assert row.verdict is Verdict.INCONCLUSIVE
    assert "only medians of 8 sessions are known, so p95 of its requests cannot be judged" in row.reason
    tight = replace(Policy(), slos=(parse_objective("ttft:p95:1ms", source="here"),))
    (row,) = [row for row in compare(side, side, tight).findings if row.metric.startswith("ttft:p95")]
    assert row.verdict is Verdict.SLO_BREACH


def test_failures_of_a_summary_count(tmp_path: Path) -> None:
    bad = foreign.folder(tmp_path / "bad", lambda run: {**vllm(run), "completed": 18, "failed": 2})
    found = compare(foreign.folder(tmp_path / "a", vllm), bad, Policy())
    assert found.verdict is Verdict.INVALID_RUN
    assert "16 of 160 requests of the run failed" in found.reason


def test_a_summary_without_failures_is_remarked(tmp_path: Path) -> None:
    def silent(run: int) -> dict[str, Any]:
        return {key: value for key, value in vllm(run).items() if key not in ("failed", "num_prompts")}

    side = foreign.folder(tmp_path / "a", silent)
    assert any("does not say how many requests failed" in line for line in compare(side, side, Policy()).warnings)


def test_a_summary_and_single_requests_of_one_load_are_one_workload(tmp_path: Path) -> None:
    old = foreign.folder(tmp_path / "old", foreign.vllm)
    new = foreign.folder(tmp_path / "new", vllm, first=20)
    for sides in ((old, new), (new, old)):
        found = compare(*sides, Policy())
        assert found.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
        assert any("e2el of vllm-bench[" in line and "is not compared" in line for line in found.warnings)


def test_points_of_a_run_in_one_list_are_workloads(tmp_path: Path) -> None:
    """InferenceX collects all points of a run in one file."""
    points = [foreign.inferencex(1, concurrency=c) for c in (4, 8, 16)]
    (one,) = read_side(foreign.write(tmp_path / "all.json", points))
    assert {row.workload for row in one.measurements} == {
        f"inferencex[in=1024,out=512,concurrency={c}]" for c in (4, 8, 16)
    }
    assert one.server["hardware"] == "gpu-a"


def test_points_on_other_hardware_are_not_comparable(tmp_path: Path) -> None:
    old = foreign.write(tmp_path / "a.json", foreign.inferencex(1))
    new = foreign.write(tmp_path / "b.json", foreign.inferencex(2, hw="gpu-b", tp=4))
    found = compare(old, new, Policy())
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "hardware: gpu-a -> gpu-b" in found.reason
    assert found.remedy.startswith("record a baseline for this one")


def test_the_speed_of_one_user_is_the_time_per_token(tmp_path: Path) -> None:
    document = foreign.inferencex(1, median_tpot=None, median_intvty=80.0)
    (one,) = read_side(foreign.write(tmp_path / "a.json", document))
    (tpot,) = [row for row in one.measurements if row.metric == "tpot"]
    assert tpot.samples == (0.0125,)


def test_a_report_of_trtllm_without_streaming_times_whole_requests(tmp_path: Path) -> None:
    side = foreign.folder(tmp_path / "a", lambda run: foreign.trtllm(run, streaming=False))
    found = compare(side, side, Policy())
    assert {row.metric for row in found.findings} == {"e2el"}
    assert any("run trtllm-bench with --streaming" in line for line in found.warnings)


def as_table(document: dict[str, Any]) -> str:
    """What GuideLLM writes as benchmarks.csv: three lines of header, one row a benchmark."""
    columns: list[tuple[str, str, str]] = []
    rows = []
    for index, one in enumerate(document["benchmarks"]):
        metrics, found = one["metrics"], dict[tuple[str, str, str], object]()
        profile = {
            "type_": "concurrent",
            "streams": [b["config"]["strategy"]["streams"] for b in document["benchmarks"]],
        }
        found["Run Info", "Run Index", ""] = index
        found["Run Info", "Profile", ""] = json.dumps(profile)
        found["Run Info", "Backend", ""] = json.dumps({"model": "tiny"})
        found["Benchmark", "Strategy", ""] = "concurrent"
        found["Timings", "Start Time", ""] = "2026-01-01 10:00:00"
        found["Request Counts", "Successful", ""] = metrics["request_totals"]["successful"]
        found["Request Counts", "Errored", ""] = metrics["request_totals"]["errored"]
        for group, name, key in (
            ("Request Latency", "Successful Sec", "request_latency"),
            ("Time to First Token", "Successful ms", "time_to_first_token_ms"),
            ("Inter Token Latency", "Successful ms", "inter_token_latency_ms"),
            ("Token Metrics", "Successful Input Tokens", "prompt_token_count"),
            ("Token Metrics", "Successful Output Tokens", "output_token_count"),
        ):
            found[group, name, "Mean"] = 1.0
            found[group, name, "Median"] = metrics[key]["successful"]["median"]
            found[group, name, "Percentiles"] = "[1, 2, 3]"
        columns = list(found)
        rows.append(list(found.values()))
    text = io.StringIO()
    csv.writer(text).writerows([*zip(*columns, strict=True), *rows])
    return text.getvalue()


def test_guidellms_table_and_yaml_say_what_its_json_says(tmp_path: Path) -> None:
    document = foreign.guidellm_medians(1, streams=(1, 4))
    (expected,) = read_side(foreign.write(tmp_path / "j" / "benchmarks.json", document))
    for suffix, text in ((".csv", as_table(document)), (".yaml", yaml.safe_dump(document))):
        path = tmp_path / f"benchmarks{suffix}"
        path.write_text(text, encoding="utf-8")
        (one,) = read_side(path)
        assert one.measurements == expected.measurements
        assert one.server == {"model": "tiny"}


def test_an_older_table_of_guidellm_is_read(tmp_path: Path) -> None:
    header = (
        "Type,Run Id,Id,Name,Start Time,Successful Requests,Successful Request latency median,"
        "Successful Time to first token ms median,Successful Inter token latency ms median,Incomplete Requests,"
        "Errored Requests,Profile"
    )
    row = (
        'generative_benchmark,a,b,concurrent@4,2025-01-01 10:00:00,40,1.5,120.0,11.0,0,1,"{""type_"": ""concurrent""}"'
    )
    path = tmp_path / "old.csv"
    path.write_text(f"{header}\n{row}\n", encoding="utf-8")
    (one,) = read_side(path)
    assert {item.workload for item in one.measurements} == {"guidellm[strategy=concurrent,streams=4]"}
    assert [(item.metric, item.samples) for item in one.measurements] == [
        ("ttft", (pytest.approx(0.12),)), ("tpot", (pytest.approx(0.011),)), ("e2el", (1.5,)),
    ]  # fmt: skip
    assert (one.measurements[0].requests, one.measurements[0].failed) == (41, 1)


def test_a_table_of_aiperf_is_read_with_the_load_of_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "concurrency_8" / "profile_export_aiperf.csv"
    path.parent.mkdir()
    path.write_text(
        "Metric,avg,min,max,p99,p50\n"
        "Inter Token Latency (ms),8.1,8.0,8.9,8.8,8.05\n"
        "Input Sequence Length (tokens),100,100,100,100,100\n"
        'Request Latency (ms),"1,180.5",900,2000,1900,"1,170.0"\n'
        "Time to First Token (ms),52.0,50.0,60.0,59.0,51.5\n"
        "\nMetric,Value\nRequest Count,40.00\nError Request Count,2.00\n",
        encoding="utf-8",
    )
    (one,) = read_side(path)
    assert {item.workload for item in one.measurements} == {"aiperf[in=100,concurrency=8]"}
    assert {item.metric: item.samples[0] for item in one.measurements} == pytest.approx(
        {"ttft": 0.0515, "tpot": 0.00805, "e2el": 1.17}
    )
    assert (one.measurements[0].requests, one.measurements[0].failed) == (42, 2)


def test_a_cancelled_run_is_remarked(tmp_path: Path) -> None:
    side = foreign.write(tmp_path / "a.json", {**foreign.aiperf_summary(2), "was_cancelled": True})
    assert any("was cancelled" in line for line in compare(side, side, Policy()).warnings)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"data": [{"session_id": "a", "payloads": []}]}, "give profile_export.jsonl or profile_export_aiperf.json"),
        ({"metadata": {"aggregation_type": "sweep"}, "per_combination_metrics": []}, "give the folder of its runs"),
        ({"avg_latency": 1.0, "latencies": [1.0], "percentiles": {"50": 1.0}}, "give one of vllm bench serve"),
        ({"elapsed_time": 1.0, "num_requests": 3, "requests_per_second": 3.0}, "give one of vllm bench serve"),
        ([{"benchmark": {}, "model": {}, "metric": {}}], "give the JSON of vllm bench serve"),
        ({"run_name": "a", "batch_size": 1, "prefill_latency": 0.1}, "give one of sglang.bench_serving"),
        ({"version": "1", "experiments": []}, "give profile_export_genai_perf.json"),
        ({**foreign.inferencex(1), "median_ttft": None, "median_tpot": None, "median_e2el": None,
          "median_intvty": None}, "--save-detailed"),
        ({**foreign.trtllm(1), "performance": {}, "streaming_metrics": {}}, "--streaming --report_json"),
        ({**foreign.guidellm(1), "benchmarks": [{"requests": {}}]}, "write benchmarks.json with all requests kept"),
        ({"hello": 1}, "InferenceX or trtllm-bench"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_file_that_would_do(tmp_path: Path, document: Any, said: str) -> None:
    path = foreign.write(tmp_path / "x.json", document)
    with pytest.raises(UnreadableResultError) as caught:
        read_side(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
