"""One failed, short or odd answer of many: results of other tools keep their name, and the error limit applies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli.compare import compare
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import GateResult, Verdict
from tests.interop import foreign

SETTLED = (Verdict.PASS, Verdict.INCONCLUSIVE)
Odd = Callable[[dict[str, Any]], None]


def judged(
    tmp_path: Path, make: Callable[..., dict[str, Any]], odd: Odd, *, speed: float = 1.0, every: bool = False
) -> GateResult:
    """Eight runs against eight others, of which the first (or every one) is odd."""

    def spoilt(run: int) -> dict[str, Any]:
        document = copy.deepcopy(make(run, speed=speed))
        if every or run == 20:
            odd(document)
        return document

    old = foreign.folder(tmp_path / "old", make)
    return compare(old, foreign.folder(tmp_path / "new", spoilt, first=20), Policy())


def one_failed(document: dict[str, Any]) -> None:
    foreign.fail(document, 7)


def one_short(document: dict[str, Any]) -> None:
    foreign.shorten(document, 7, 20)


def prompts_longer(document: dict[str, Any]) -> None:
    document["input_lens"] = [length + (index % 3 == 0) for index, length in enumerate(document["input_lens"])]


def several_short(document: dict[str, Any]) -> None:
    for index in range(6):
        foreign.shorten(document, index, 4)


@pytest.mark.parametrize("make", [foreign.vllm, foreign.sglang])
@pytest.mark.parametrize("odd", [one_failed, one_short, prompts_longer, several_short])
def test_odd_lengths_rename_no_workload(tmp_path: Path, make: Callable[..., dict[str, Any]], odd: Odd) -> None:
    """C015: the lengths that came back are results."""
    same = judged(tmp_path / "same", make, odd)
    assert same.verdict in SETTLED
    assert same.coverage.expected == same.coverage.compared == 3
    assert judged(tmp_path / "slow", make, odd, speed=1.3).verdict is Verdict.REGRESSION


def test_a_baseline_whose_first_run_is_the_odd_one_gives_the_usual_name(tmp_path: Path) -> None:
    """C015, the other way round."""

    def first_odd(run: int) -> dict[str, Any]:
        document = foreign.vllm(run)
        if run == 0:
            several_short(document)
            one_failed(document)
        return document

    old = foreign.folder(tmp_path / "old", first_odd)
    new = foreign.folder(tmp_path / "new", foreign.vllm, first=20)
    found = compare(old, new, Policy())
    assert {row.workload for row in found.findings} == {
        "vllm-bench[endpoint=openai-chat,in=512,out=32,rate=inf,concurrency=4]"
    }


def test_more_failures_than_allowed_make_a_run_invalid(tmp_path: Path) -> None:
    """C015: 5 % of requests may fail, two of twenty in every run may not."""
    found = judged(tmp_path, foreign.vllm, lambda document: foreign.fail(document, 3, 9), every=True)
    assert found.verdict is Verdict.INVALID_RUN
    assert "16 of 160 requests of the run failed (10.0 %, allowed 5.0 %)" in found.reason


def test_a_run_in_which_everything_failed_is_invalid_as_a_summary_too(tmp_path: Path) -> None:
    def all_failed(document: dict[str, Any]) -> None:
        for key in ("ttfts", "itls", "errors", "input_lens", "output_lens"):
            del document[key]
        document.update(completed=0, median_ttft_ms=0.0, median_tpot_ms=0.0)

    old = foreign.folder(tmp_path / "old", lambda run: foreign.without_requests(foreign.vllm(run)))
    bad = foreign.vllm(1)
    all_failed(bad)
    found = compare(old, foreign.write(tmp_path / "new.json", bad), Policy())
    assert found.verdict is Verdict.INVALID_RUN
    assert "20 of 20 requests of the run failed" in found.reason


def rows_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["benchmarks"][0]["requests"]["successful"]
    return found


def in_one_chunk(document: dict[str, Any]) -> None:
    row = rows_of(document)[7]
    row.update(inter_token_latency_ms=0.0, output_tokens=3, request_latency=row["time_to_first_token_ms"] / 1e3 + 0.001)


def one_errored(document: dict[str, Any]) -> None:
    row = rows_of(document).pop()
    document["benchmarks"][0]["requests"]["errored"].append({**row, "time_to_first_token_ms": None})
    document["benchmarks"][0]["metrics"]["request_totals"].update(successful=19, errored=1)


def without_gap(document: dict[str, Any]) -> None:
    rows_of(document)[3].update(inter_token_latency_ms=None, output_tokens=1, request_latency=0.3)


@pytest.mark.parametrize("odd", [in_one_chunk, one_errored, without_gap])
def test_one_odd_request_voids_no_file_of_guidellm(tmp_path: Path, odd: Odd) -> None:
    """C016: a request whose tokens all came in one chunk has no time per token; the others have."""
    assert judged(tmp_path / "same", foreign.guidellm, odd).verdict in SETTLED
    assert judged(tmp_path / "slow", foreign.guidellm, odd, speed=1.3).verdict is Verdict.REGRESSION


def test_one_request_of_aiperf_in_one_chunk_voids_no_file(tmp_path: Path) -> None:
    """C016, in the records of AIPerf."""
    for side, first in (("old", 0), ("new", 20)):
        for run in range(first, first + 8):
            records = foreign.aiperf_records(run)
            if run == 20:
                records[3]["metrics"]["inter_token_latency"]["value"] = 0.0
                records[3]["metrics"]["request_latency"] = dict(records[3]["metrics"]["time_to_first_token"])
            foreign.write(tmp_path / side / f"run_{run}" / "profile_export.jsonl", records)
    found = compare(tmp_path / "old", tmp_path / "new", Policy())
    assert found.verdict in SETTLED
    assert found.findings[0].baseline_sessions == found.findings[0].candidate_sessions == 8


def test_a_server_that_sends_most_answers_in_one_chunk_is_remarked(tmp_path: Path) -> None:
    def most(document: dict[str, Any]) -> None:
        for row in rows_of(document)[:15]:
            latency = row["time_to_first_token_ms"] / 1e3 + 0.001
            row.update(inter_token_latency_ms=0.0, request_latency=latency)

    found = judged(tmp_path, foreign.guidellm, most, every=True)
    assert any("most requests have no time per token" in line for line in found.warnings)
