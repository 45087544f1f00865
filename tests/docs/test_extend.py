"""The worked examples of docs/howto/extend.md, taken from the page and run as they stand there."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from phasegate.cli import main
from tests.docs.blocks import ROOT, blocks
from tests.edges.quick_pytest import QuickPytest

PAGE = ROOT / "docs" / "howto" / "extend.md"

CHAT = "input_tokens: 64\noutput_tokens: 8\nrequests: 2\nwarmups: 0\n"

SERVER = """import os, sys
words = ["-m", "phasegate.engines.simulator", "--config", '{"speed": 1}', "--port", sys.argv[1]]
os.execv(sys.executable, [sys.executable, *words])
"""
"""Stands in for the reader's own server: prints a line when it is ready, and serves until it is ended."""

SIMULATED = ("--perf-engine", "simulator", "--perf-engine-config", "speed=1")


def examples() -> dict[str, str]:
    """The page's Python blocks by the hook or test that they define."""
    found = {}
    for block in blocks("python"):
        if block.path == PAGE:
            name = next(line for line in reversed(block.text.splitlines()) if line.startswith("def "))
            found[name[4:].split("(")[0]] = block.text
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the starter kit and one small workload."""
    assert main(["init", str(tmp_path)]) == 0
    for path in (tmp_path / "fixtures" / "workloads").glob("*.yaml"):
        path.unlink()
    (tmp_path / "fixtures" / "workloads" / "chat.yaml").write_text(CHAT, encoding="utf-8")
    return tmp_path


def conftest(repository: Path, text: str) -> None:
    (repository / "perf_tests" / "conftest.py").write_text(text, encoding="utf-8")


def test_a_computed_workload_is_measured_like_one_of_a_file(repository: Path, quick: QuickPytest) -> None:
    conftest(repository, examples()["pytest_perf_workloads"])
    done = quick.run("perf_tests/test_rows.py", "-rA", *SIMULATED, "--perf-requests", "2", cwd=repository)
    assert done.status == 0, done.output
    assert "PASSED perf_tests/test_rows.py::test_row[turns[in=512,out=32]-ttft]" in done.output
    assert "PASSED perf_tests/test_rows.py::test_row[chat[in=64,out=8]-tpot]" in done.output


@pytest.mark.alone
def test_a_metric_of_ones_own_is_stored_compared_and_asked_for(repository: Path, quick: QuickPytest) -> None:
    code = examples()
    conftest(repository, code["pytest_perf_metrics"])
    (repository / "perf_tests" / "test_own.py").write_text(code["test_no_pause_after_the_first_token"])
    own, gate = "perf_tests/test_own.py", "perf_tests/test_regression.py"
    done = quick.run(own, gate, *SIMULATED, "--perf-save-sessions", "kept", "--perf-sessions", "1", cwd=repository)
    assert "test_own.py" in done.output
    assert "1 passed" in done.output, done.output
    stored = [json.loads(path.read_text()) for path in (repository / "kept").glob("*.json")]
    assert stored, done.output
    names = {row["extra_info"]["metric"]: row["extra_info"] for row in stored[0]["benchmarks"]}
    assert names["second_gap"]["unit"] == "s"
    assert names["second_gap"]["phase"] == "decode"
    update = quick.run(gate, *SIMULATED, "--update-baselines", "--perf-sessions", "2", cwd=repository)
    assert update.status == 0, update.output
    judged = quick.run(gate, *SIMULATED, "--perf-sessions", "2", cwd=repository)
    assert "second_gap" in judged.output


def test_an_engine_of_ones_own_is_started_measured_and_stopped(repository: Path, quick: QuickPytest) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = examples()["pytest_perf_engine"]
    assert "port=8123" in code
    conftest(repository, code.replace("port=8123", f"port={port}"))
    (repository / "my_server.py").write_text(SERVER, encoding="utf-8")
    done = quick.run("perf_tests/test_rows.py", "--perf-engine", "mine", "--perf-requests", "2", cwd=repository)
    assert done.status == 0, done.output
    assert "phasegate-simulator" in done.output
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0, "the engine was left running"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def pytest_perf_engine(name, config):\n    return object()\n", "is no engine: it lacks"),
        ("def pytest_perf_metrics(config):\n    return ['ttft']\n", "which is no phasegate.core.metric.Metric"),
        ("def pytest_perf_workloads(config):\n    return [1]\n", "which is no phasegate.core.workload.Workload"),
        (
            "from phasegate.core.workload import load_workload\nfrom pathlib import Path\n\n"
            "def pytest_perf_workloads(config):\n    return [load_workload(Path('fixtures/workloads/chat.yaml'))]\n",
            "a workload named 'chat' exists already",
        ),
        (
            "import dataclasses\nfrom phasegate.core.metric import metric_named\n\n"
            "def pytest_perf_metrics(config):\n"
            "    return [dataclasses.replace(metric_named('ttft'), definition='mine')]\n",
            "exists already; choose another name",
        ),
    ],
    ids=["engine", "metric", "workload", "workload-name", "metric-name"],
)
def test_a_wrong_answer_of_a_hook_ends_the_run_in_one_line(
    repository: Path, quick: QuickPytest, text: str, said: str
) -> None:
    conftest(repository, text)
    done = quick.run("perf_tests/test_rows.py", "-q", "--perf-engine", "simulator", cwd=repository)
    assert done.status == 4, done.output
    assert said in done.output
    assert "Traceback" not in done.output
