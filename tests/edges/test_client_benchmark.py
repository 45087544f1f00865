"""The comparison of clients: requests are matched with the server's log, reports of tools are read, a page written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import _other_aiperf, _other_guidellm, _server
from benchmarks._client_page import Figures, client_page
from benchmarks._other_run import Job, Ran, Told, ToolFailedError, run_command
from benchmarks._others import run_tool
from benchmarks.client import Plan, measure

LOG = {"a": {"name": "a", "arrived": 10.0, "left": [10.1, 10.12, 10.14]}}


class FakeTool:
    """A load tool that reports what it is given."""

    label = "fake"
    about = "reports what it is given"

    def __init__(self, *told: Told) -> None:
        self._told = list(told)

    def install(self) -> str:
        return "1.0"

    def run(self, job: Job) -> Ran:
        assert job.root == "http://127.0.0.1:1"
        return Ran(self._told, lambda begin, end: (end - begin, 2048.0))


def test_a_tools_report_is_held_against_the_servers_log_of_the_same_request() -> None:
    """TTFT 3 ms too long, TPOT 5 % too long, and a second request that it never reported."""
    tool = FakeTool(Told("a", 0.103, 0.021))
    found = run_tool(tool, url="http://127.0.0.1:1/v1", count=2, tokens=3, core=None, fetch_log=lambda: LOG)
    assert found["ttft_p50"] == pytest.approx(0.003)
    assert found["tpot_p50"] == pytest.approx(0.05)
    assert found["cpu"] == pytest.approx(0.14 / 3)
    assert (found["lost"], found["memory"]) == (1, 2048.0)


def test_a_report_of_other_requests_is_no_report() -> None:
    with pytest.raises(ToolFailedError, match="none of 1 reported requests"):
        run_tool(
            FakeTool(Told("b", 0.1, 0.02)),
            url="http://127.0.0.1:1/v1",
            count=1,
            tokens=3,
            core=None,
            fetch_log=lambda: LOG,
        )


def test_the_server_names_requests_by_user_prompt_or_header() -> None:
    def prompt(text: object) -> dict[str, object]:
        return {"messages": [{"role": "user", "content": text}]}

    head = b"POST / HTTP/1.1\r\nX-Request-ID: abc"
    assert _server._name(head, {"user": "7", **prompt("request-3 word")}) == "7"
    assert _server._name(head, prompt("request-3 word")) == "3"
    assert _server._name(head, prompt([{"type": "text", "text": "request-4 word"}])) == "4"
    assert _server._name(head, prompt("word word")) == "abc"


def job(folder: Path) -> Job:
    return Job("http://127.0.0.1:1/v1", 1, 3, None, folder)


def test_aiperfs_records_are_read_without_warm_up_and_failures(tmp_path: Path) -> None:
    def record(name: str, phase: str = "profiling", error: object = None) -> str:
        metrics = {
            "time_to_first_token": {"value": 101.0, "unit": "ms"},
            "inter_token_latency": {"value": 20.5, "unit": "ms"},
        }
        metadata = {"x_request_id": name, "benchmark_phase": phase}
        return json.dumps({"metadata": metadata, "metrics": metrics, "error": error})

    lines = [record("w", "warmup"), record("a"), record("b", error={"code": 500})]
    (tmp_path / "profile_export.jsonl").write_text("\n".join(lines))
    (one,) = _other_aiperf._records(job(tmp_path))
    assert one.name == "a"
    assert (one.ttft, one.tpot) == pytest.approx((0.101, 0.0205))


def test_guidellms_records_are_read_with_the_name_in_their_prompt(tmp_path: Path) -> None:
    body = json.dumps({"body": {"messages": [{"content": [{"type": "text", "text": "request-12 word"}]}]}})
    request = {"request_args": body, "time_to_first_token_ms": 101.0, "inter_token_latency_ms": 20.5}
    document = {"benchmarks": [{"requests": {"successful": [request]}}]}
    (tmp_path / "benchmarks.json").write_text(json.dumps(document))
    (one,) = _other_guidellm._records(job(tmp_path))
    assert one.name == "12"
    assert (one.ttft, one.tpot) == pytest.approx((0.101, 0.0205))


def test_a_tool_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(ToolFailedError, match="exit status 3: no such model"):
        run_command(["sh", "-c", "echo no such model; exit 3"], job(tmp_path))


def test_a_real_run_loses_nothing_and_names_a_tool_that_fails() -> None:
    """Two streams of three tokens, our client and the bare one, beside a tool that reports nothing."""
    trouble: list[str] = []
    plan = Plan(2, 1, 3, 50.0, {"fake 1.0": FailingTool()})
    rows = {row.reader: row for row in measure(["bare", "ours", "fake 1.0"], plan, trouble)}
    assert set(rows) == {"bare", "ours"}
    assert all(row.lost == 0 and row.memory_per_stream >= 0 for row in rows.values())
    assert trouble == ["fake 1.0 at 2 streams: 2 streams are too many"]


class FailingTool(FakeTool):
    """A tool that does not run."""

    def run(self, job: Job) -> Ran:
        raise ToolFailedError(f"{job.count} streams are too many")


def test_the_page_names_its_command_its_tools_and_what_did_not_run() -> None:
    row = Figures("ours", 64, 1e-5, 2e-5, 0.0, 1e-5, 1.1e-5, 1.2, 1.0, 1.0, 50.0, 32768.0, 0, 5)
    text = client_page([row], 5, "--others --page", {"fake 1.0": FakeTool()}, ["aiperf: cannot be installed: gone"])
    assert "`python -m benchmarks.client --others --page`" in text
    assert "* **fake 1.0**: reports what it is given." in text
    assert "* aiperf: cannot be installed: gone" in text
    assert "| 64 | ours | 50.0 | 0.01 | 0.02 | 1.00x | 0.000% | 0.001% | 11 | 1.20x | 1.00x | 32 | 0 |" in text
