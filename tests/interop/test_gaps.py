"""Gaps between tokens that cannot be: negative ones, and ones that do not fit the request; named in every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phasegate.store.other_tools.reading import read_side
from phasegate.store.other_tools.result import UnreadableResultError
from tests.interop import foreign


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableResultError) as caught:
        read_side(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("make", [foreign.vllm, foreign.sglang])
def test_a_negative_gap_in_a_list_is_named(tmp_path: Path, make: Callable[[int], dict[str, Any]]) -> None:
    document = make(1)
    document["itls"][4][2] = -0.5
    said = refusal(foreign.write(tmp_path / "a.json", document))
    assert "request 5: gap 3 is -0.5, but no token comes before the last one" in said


@pytest.mark.parametrize("gap", [float("nan"), float("inf"), "0.01", None, True])
def test_a_gap_that_is_no_number_is_named(tmp_path: Path, gap: Any) -> None:
    document = foreign.vllm(1)
    document["itls"][4][2] = gap
    assert "request 5: gap 3" in refusal(foreign.write(tmp_path / "a.json", document))


@pytest.mark.parametrize("make", [foreign.vllm, foreign.sglang])
def test_gaps_longer_than_the_whole_run_are_named(tmp_path: Path, make: Callable[[int], dict[str, Any]]) -> None:
    document = make(1)
    document["itls"][4][2] = 40.0
    assert "request 5: ttft and gaps make 40.5 s, but the whole run took 30 s" in refusal(
        foreign.write(tmp_path / "a.json", document)
    )


def test_gaps_that_contradict_the_latency_of_a_fork_are_named(tmp_path: Path) -> None:
    document = foreign.vllm(1)
    whole = [first + sum(gaps) for first, gaps in zip(document["ttfts"], document["itls"], strict=True)]
    assert read_side(foreign.write(tmp_path / "a.json", {**document, "e2els": whole}))
    whole[2] /= 2
    said = refusal(foreign.write(tmp_path / "a.json", {**document, "e2els": whole}))
    assert "request 3: the times do not add up: first token after" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inter_token_latency_ms": -10.0}, "request 1: inter_token_latency_ms: -10.0 is no measurement"),
        ({"inter_token_latency_ms": 90.0}, "request 1: the times do not add up"),
        ({"request_latency": 0.1}, "request 1: the times do not add up"),
        ({"request_latency": 520.0}, "request 1: the gaps do not add up to the request"),
        ({"time_to_first_token_ms": 900.0}, "request 1: the times do not add up"),
    ],
)
def test_gaps_of_guidellm(tmp_path: Path, change: dict[str, float], said: str) -> None:
    document = foreign.guidellm(1)
    document["benchmarks"][0]["requests"]["successful"][0].update(change)
    assert said in refusal(foreign.write(tmp_path / "a.json", document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"inter_token_latency": {"value": -8.0, "unit": "ms"}}, "line 2: inter_token_latency: -8.0 is no measurement"),
        ({"inter_token_latency": {"value": 4.0, "unit": "ms"}}, "line 2: the gaps do not add up to the request"),
        ({"inter_token_latency": {"value": 8.0, "unit": "s"}}, "line 2: the times do not add up"),
        ({"inter_chunk_latency": {"value": [8.0, -1.0], "unit": "ms"}}, "line 2: inter_chunk_latency: gap 2 is -1.0"),
        ({"inter_chunk_latency": {"value": [800.0], "unit": "ms"}}, "line 2: the times do not add up"),
        ({"request_latency": {"value": 20.0, "unit": "ms"}}, "line 2: the times do not add up"),
    ],
)
def test_gaps_of_aiperf(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    records = foreign.aiperf_records(1)
    records[1]["metrics"].update(change)
    assert said in refusal(foreign.write(tmp_path / "a.jsonl", records))


def test_a_table_whose_requests_end_before_their_first_token_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [
        "session,workload,metric,value",
        *("1,chat,ttft,200" for _ in range(3)),
        *("1,chat,e2el,1.5" for _ in range(3)),
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    said = refusal(path)
    assert "session '1': 'chat': e2el 1.50 s is shorter than ttft 3.3 min" in said
    path.write_text("\n".join([*rows[:1], "1,chat,ttft,0.3", "1,chat,ttft,0.1", "1,chat,e2el,0.2", "1,chat,e2el,0.4"]))
    assert read_side(path)
    path.write_text("\n".join([*rows[:1], "1,chat,ttft,0.3", "1,chat,e2el,failed", "1,chat,e2el,0.2"]))
    assert read_side(path), "of unequal numbers nobody knows which belong together"
