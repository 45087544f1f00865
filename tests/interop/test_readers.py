"""Result files of other tools: found out by what they hold, read in our units, refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.session import Measurement, Session
from phasegate.report.document.rows import FINDING_COLUMNS
from phasegate.store import session_text
from phasegate.store.other_tools.reading import read_side
from phasegate.store.other_tools.result import UnreadableResultError, WrongUsageError
from tests.sessions import measurement, session

DATA = Path(__file__).parent / "data"


def only(sessions: list[Session]) -> dict[tuple[str, str], Measurement]:
    (one,) = sessions
    return {(item.workload, item.metric): item for item in one.measurements}


def test_vllm_lists_are_seconds_and_gaps_are_summed_over_tokens() -> None:
    """Request 2 came in two chunks of 3 tokens after the first: 60 ms over 3 gaps, not over 2."""
    found = only(read_side(DATA / "vllm_bench.json"))
    name = "vllm-bench[endpoint=openai-chat,in=128,out=4,rate=inf,concurrency=2]"
    assert found[name, "ttft"].samples == (0.101, 0.103, 0.102)
    assert found[name, "tpot"].samples == pytest.approx((0.02, 0.02, 0.02))
    assert found[name, "e2el"].samples == pytest.approx((0.161, 0.163, 0.162))
    assert (found[name, "ttft"].requests, found[name, "ttft"].failed) == (4, 1)


def test_every_line_of_sglang_is_a_session() -> None:
    first, second = read_side(DATA / "sglang_bench.jsonl")
    assert [first.session_id, second.session_id] == ["sglang_bench:1", "sglang_bench:2"]
    found = only([first])
    name = "sglang-bench[endpoint=sglang,dataset=random,in=256,out=5,range=1,rate=inf]"
    assert found[name, "ttft"].samples == (0.049, 0.051)
    assert found[name, "tpot"].samples == pytest.approx((0.02, 0.02))
    assert found[name, "e2el"].samples == pytest.approx((0.129, 0.131))


def test_aiperf_records_carry_their_unit_and_warm_ups_are_left_out() -> None:
    (one,) = read_side(DATA / "aiperf_run")
    assert one.session_id == "aiperf_run"
    found = only([one])
    name = "aiperf[in=550,out=9]"
    assert found[name, "ttft"].samples == pytest.approx((0.2555,))
    assert found[name, "tpot"].samples == pytest.approx((0.00525,))
    assert found[name, "e2el"].samples == pytest.approx((0.2975,))
    assert (found[name, "ttft"].requests, found[name, "ttft"].failed) == (2, 1)


def test_an_aiperf_summary_gives_its_median() -> None:
    found = only(read_side(DATA / "profile_export_aiperf.json"))
    name = "aiperf[concurrency=4]"
    assert found[name, "ttft"].samples == pytest.approx((0.2555,))
    assert (found[name, "ttft"].requests, found[name, "ttft"].failed) == (20, 1)


def test_guidellm_tpot_is_its_inter_token_latency_and_its_latency_is_seconds() -> None:
    """Its own time_per_output_token_ms counts the first token in and would read 26.2 ms."""
    found = only(read_side(DATA / "guidellm_benchmarks.json"))
    one = "guidellm[strategy=concurrent,in=128,out=7,streams=1]"
    assert found[one, "ttft"].samples == pytest.approx((0.1, 0.11))
    assert found[one, "tpot"].samples == pytest.approx((0.02,))
    assert found[one, "e2el"].samples == pytest.approx((0.34, 0.11))
    assert (found[one, "ttft"].requests, found[one, "ttft"].failed) == (3, 1)
    assert found["guidellm[strategy=concurrent,out=13,streams=4]", "ttft"].samples == pytest.approx((0.16,))


def test_a_folder_of_aiperf_runs_is_one_session_a_run(tmp_path: Path) -> None:
    for name in ("run1", "run2"):
        shutil.copytree(DATA / "aiperf_run", tmp_path / name)
    assert [one.session_id for one in read_side(tmp_path)] == ["run1", "run2"]


def test_a_folder_of_session_files_is_read_whole(tmp_path: Path) -> None:
    for number in (2, 1):
        text = session_text(session(number, measurement("chat", "tpot", [0.02])))
        (tmp_path / f"s{number}.json").write_text(text)
    assert [one.recorded_at for one in read_side(tmp_path)] == ["2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"]


def test_an_empty_folder_holds_no_session(tmp_path: Path) -> None:
    assert read_side(tmp_path) == []


def table(tmp_path: Path, text: str, *, paired: bool = False) -> list[Session]:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    return read_side(path, paired=paired)


def test_a_table_has_one_row_a_request(tmp_path: Path) -> None:
    rows = "1,chat,ttft,0.1 1,chat,time_to_first_token,0.2 1,chat,tpot,failed 2,chat,ttft,0.3"
    text = "\n".join(["session,workload,metric,value", *rows.split()])
    first, second = table(tmp_path, text)
    assert only([first])["chat", "ttft"].samples == (0.1, 0.2)
    assert (only([first])["chat", "tpot"].requests, only([first])["chat", "tpot"].failed) == (1, 1)
    assert second.session_id == "2"


def test_a_paired_table_is_read_by_its_blocks(tmp_path: Path) -> None:
    text = "block,session,workload,metric,value\nb1,1,chat,ttft,0.1\nb2,1,chat,ttft,0.2\n"
    assert [one.session_id for one in table(tmp_path, text, paired=True)] == ["b1", "b2"]
    assert [one.session_id for one in table(tmp_path, text)] == ["1"]
    short = "block,workload,metric,value\nb1,chat,ttft,0.1\n"
    assert [one.session_id for one in table(tmp_path, short, paired=True)] == ["b1"]
    with pytest.raises(WrongUsageError, match="the column 'block' is missing, by which --paired reads a table"):
        table(tmp_path, "session,workload,metric,value\n1,chat,ttft,0.1\n", paired=True)
    with pytest.raises(UnreadableResultError, match="the column 'block' is missing") as caught:
        table(tmp_path, "hello\n", paired=True)
    assert not isinstance(caught.value, WrongUsageError), "it is no table of ours at all"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv: the file is empty; nothing was measured"),
        ("\ufeff\n", "t.csv: the file is empty; nothing was measured"),
        ("value,session\n", "line 1: the column 'workload' is missing"),
        ("session,workload,metric\n", "line 1: the column 'value' is missing"),
        ("session,workload,metric,value\n", "no rows below the header"),
        ("session,workload,metric,value\n1,chat,ttft,nan\n", "line 2: the value: nan is no measurement"),
        ("session,workload,metric,value\n1,chat,ttft,inf\n", "line 2: the value: inf is no measurement"),
        ("session,workload,metric,value\n1,chat,ttft,0\n", "line 2: the value: 0.0 is no measurement"),
        ("session,workload,metric,value\n1,chat,ttft,-1\n", "line 2: the value: -1.0 is no measurement"),
        ("session,workload,metric,value\n1,chat,ttft,12ms\n", "line 2: the value '12ms' is not a number"),
        ("session,workload,metric,value\n1,chat,ttft_ms,12\n", "line 2: 'ttft_ms' is in milliseconds"),
        ("session,workload,metric,value\n1,chat,speed,12\n", "line 2: unknown metric 'speed'; known: ttft"),
        ("session,workload,metric,value\n1,chat,ttft,0.1\n1,chat,tt", "line 3: 3 fields where the header has 4"),
        ("session,workload,metric,value\n,chat,ttft,0.1\n", "line 2: session is empty"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UnreadableResultError) as caught:
        table(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def changed(name: str, change: Callable[[Any], Any]) -> str:
    document = json.loads((DATA / name).read_text(encoding="utf-8"))
    change(document)
    return json.dumps(document)


def without_times(name: str) -> str:
    """A result with neither single requests nor medians."""
    document = json.loads((DATA / name).read_text(encoding="utf-8"))
    return json.dumps({key: value for key, value in document.items() if key != "ttfts" and not key.endswith("_ms")})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("v.json", without_times("vllm_bench.json"), "run vllm bench serve with --save-detailed"),
        ("v.json", changed("vllm_bench.json", lambda d: d["itls"].pop()), "itls must be a list of 4 items"),
        ("v.json", changed("vllm_bench.json", lambda d: d.update(ttfts=[-1, 1, 1, 1])), "ttft: -1 is no measurement"),
        (
            "v.json",
            changed("vllm_bench.json", lambda d: d["ttfts"].__setitem__(0, float("nan"))),
            "ttft: nan is no measurement",
        ),
        ("v.json", (DATA / "vllm_bench.json").read_text()[:700], "the file ends too early"),
        ("s.jsonl", '{"total_output_tokens_retokenized": 1, "backend": "sglang"}', "--output-details"),
        (
            "a.jsonl",
            '{"metadata": {}, "metrics": {"time_to_first_token": {"value": 1, "unit": "parsecs"}}}',
            "'parsecs'",
        ),
        ("a.jsonl", "", "a.jsonl: the file is empty; nothing was measured"),
        ("a.json", "\n", "a.json: the file is empty; nothing was measured"),
        ("a.json", "session,workload,metric,value\n", "line 1 column 1 (character 0): not readable as JSON"),
        ("a.txt", "", "a.txt: the file is empty; nothing was measured"),
        ("g.json", '{"benchmarks": []}', "no benchmark in it"),
        ("g.json", '{"benchmarks": [{"requests": null}]}', "no single requests in it"),
        ("x.json", '{"hello": 1}', "not a result file that phasegate knows"),
        ("x.json", '{"schema": "phasegate-report/1"}', "a report of phasegate, which holds verdicts"),
        ("x.json", '{"schema": 1}', "not a result file that phasegate knows"),
        ("x.json", "[1, 2]", "not a result file that phasegate knows"),
        ("x.jsonl", '{"hello": 1}\n{"hello": 2}', "not a result file that phasegate knows"),
    ],
)
def test_a_result_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableResultError) as caught:
        read_side(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_session_twice_in_a_folder_is_refused(tmp_path: Path) -> None:
    text = session_text(session(1, measurement("chat", "tpot", [0.02])))
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableResultError, match="is in it twice"):
        read_side(tmp_path)


def test_the_folder_above_all_baselines_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "s.json").write_text(session_text(session(1, measurement("chat", "tpot", [0.02]))))
    with pytest.raises(WrongUsageError, match=r"holds folders of sessions; name one of them: one$"):
        read_side(tmp_path)
    for name in ("five", "four", "three", "two"):
        shutil.copytree(tmp_path / "one", tmp_path / name)
    with pytest.raises(WrongUsageError, match=r"name one of them: five, four, one and 2 more$"):
        read_side(tmp_path)


def test_a_suffix_that_says_nothing_leaves_it_to_the_text(tmp_path: Path) -> None:
    path = tmp_path / "results.txt"
    path.write_text("session,workload,metric,value\n1,chat,ttft,0.1\n", encoding="utf-8")
    assert only(read_side(path))["chat", "ttft"].samples == (0.1,)
    path.write_text((DATA / "vllm_bench.json").read_text(encoding="utf-8"), encoding="utf-8")
    assert len(read_side(path)) == 1


@pytest.mark.parametrize("paired", [False, True])
def test_a_report_as_table_is_recognised_as_one(paired: bool, tmp_path: Path) -> None:
    with pytest.raises(UnreadableResultError, match="a report of phasegate, which holds verdicts") as caught:
        table(tmp_path, ",".join(FINDING_COLUMNS) + "\n", paired=paired)
    assert not isinstance(caught.value, WrongUsageError)
