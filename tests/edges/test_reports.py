"""Reports of real pytest runs: written however the run ends, refused before it begins, made again afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from phasegate.cli import main
from phasegate.report.document import Document, from_json
from tests.edges.quick_pytest import ROOT, Done, QuickPytest

SIMULATOR = ("--perf-engine", "simulator", "--perf-engine-config")


def report_of(path: Path) -> Document:
    return from_json(path.read_text(encoding="utf-8"), str(path))


def measured(quick: QuickPytest, small: Path, *options: str | Path, settings: str = "") -> Done:
    """A run of the gate on one small workload."""
    return quick.run(
        "perf_tests/test_regression.py", "-q", *SIMULATOR, f"speed=5 {settings}", "--perf-workloads", small,
        "--perf-baselines", small / "none", "--missing-baseline", "skip", *options,
    )  # fmt: skip


def test_a_run_writes_every_format_and_says_where(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"r{suffix}" for suffix in (".html", ".md", ".json", ".csv")]
    done = measured(quick, small, *[word for path in paths for word in ("--perf-report", path)])
    assert done.status == 0, done.output
    for path in paths:
        assert path.stat().st_size > 100
        assert f"report: {path}" in done.output
    document = report_of(tmp_path / "r.json")
    assert document.headline.verdict == "NO_BASELINE"
    assert document.exit_status == 0
    assert document.validity.outcomes["no_baseline"] == 3
    assert document.environment.server["engine"].startswith("phasegate-simulator")
    assert " perf_tests/test_regression.py -q --perf-engine simulator" in document.reproduce.commands[0]
    assert "--perf-seed" in document.reproduce.commands[0]


def test_a_failed_run_is_reported_with_its_reason_and_exit_status(
    quick: QuickPytest, small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.json"
    faults = 'faults=[{"fault":"http_500","at":[3,4,5,6,7,8,9,10,11,12]}]'
    done = measured(quick, small, "--perf-report", path, settings=faults)
    assert done.status == 15, done.output
    document = report_of(path)
    assert document.headline.verdict == "INVALID_RUN"
    assert "http_500" in document.headline.how_much
    assert document.exit_status == 15


def test_a_server_that_is_not_there_is_reported(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    done = quick.run(
        "perf_tests/test_regression.py", "-q", "--perf-base-url", "http://127.0.0.1:9/v1", "--perf-model", "m",
        "--perf-workloads", small, "--perf-report", path, OPENAI_API_KEY="private-key-0001",
    )  # fmt: skip
    assert done.status == 15, done.output
    assert f"report: {path}" in done.output
    document = report_of(path)
    assert document.headline.verdict == "NOT_MEASURED"
    assert "127.0.0.1:9" in document.headline.how_much
    assert "private-key-0001" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said"), [("r.pdf", "the suffix says the format"), ("file/r.md", "is a file; name a file in a folder")]
)
def test_a_report_that_could_not_be_written_ends_the_run_before_anything_is_measured(
    quick: QuickPytest, small: Path, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "file").touch()
    done = measured(quick, small, "--perf-report", tmp_path / name)
    assert done.status == 4, done.output
    lines = [line for line in done.output.splitlines() if line.strip()]
    assert len(lines) == 1, done.output
    assert said in lines[0]
    assert f"--perf-report {tmp_path / name}" in lines[0]


@pytest.mark.slow
def test_a_stopped_run_leaves_its_report(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    (small / "small.yaml").write_text("input_tokens: 64\noutput_tokens: 64\nrequests: 400\nwarmups: 0\n")
    command = [
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "perf_tests/test_regression.py", *SIMULATOR,
        "speed=1", "--perf-workloads", str(small), "--perf-baselines", str(small / "none"), "--perf-report", str(path),
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        try:
            _wait_for_engine(run)
            time.sleep(3.0)
            os.kill(run.pid, signal.SIGINT)
            output, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 2, output
    document = report_of(path)
    assert document.headline.verdict == "INTERRUPTED"
    assert document.exit_status == 2
    assert document.validity.interrupted


def _wait_for_engine(run: subprocess.Popen[str]) -> None:
    import psutil

    parent, deadline = psutil.Process(run.pid), time.monotonic() + 60
    while time.monotonic() < deadline and not parent.children():
        assert run.poll() is None
        time.sleep(0.05)


def test_a_run_without_a_report_loads_nothing_of_it(quick: QuickPytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert not [name for name in sys.modules if 'phasegate.report' in name]\n"
    )
    assert quick.run("test_it.py", "-q", cwd=tmp_path).status == 0


def test_a_report_of_a_run_that_measures_nothing_says_so(quick: QuickPytest, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    done = quick.run("test_it.py", "-q", "--perf-report", tmp_path / "r.json", cwd=tmp_path)
    assert done.status == 1
    document = report_of(tmp_path / "r.json")
    assert document.headline.verdict == "FAIL"
    assert "assert 1 == 2" in document.headline.reason


def test_a_stored_report_is_shown_again(
    quick: QuickPytest, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(quick, small, "--perf-report", tmp_path / "r.json", "--perf-save-sessions", tmp_path / "sessions")
    assert main(["report", str(tmp_path / "r.json"), "-o", str(tmp_path / "again.html"), "-o", "-"]) == 0
    assert "NO_BASELINE" in (tmp_path / "again.html").read_text(encoding="utf-8")
    assert capsys.readouterr().out.startswith(f"report: {tmp_path / 'again.html'}\n## ")
    sessions = str(tmp_path / "sessions")
    output = tmp_path / "compared.json"
    assert main(["report", sessions, "--baseline", sessions, "-o", str(output)]) == 0
    document: Any = json.loads(output.read_text(encoding="utf-8"))
    assert document["gate"]["expected"] == 3
    assert document["validity"]["requests"] == 3


@pytest.mark.parametrize(
    ("result", "options", "said"),
    [
        ("gone.json", (), "no such file or folder"),
        ("broken.json", (), "not JSON"),
        ("other.json", (), "not a result file"),
        ("good.json", ("-o", "r.pdf"), "the suffix says the format"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], result: str, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "broken.json").write_text('{"schema": "phasegate-report/1", ')
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "good.json").write_text("{}")
    assert main(["report", str(tmp_path / result), *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("broken", "said"), [("document.build.build", "could not be made"), ("as_markdown.render_markdown", "be drawn")]
)
def test_a_fault_of_the_report_takes_no_verdict_with_it(
    quick: QuickPytest, tmp_path: Path, broken: str, said: str
) -> None:
    module, _, name = broken.rpartition(".")
    (tmp_path / "conftest.py").write_text(
        f"import phasegate.report.{module} as module\n\n"
        "def broken(*_):\n    raise RuntimeError('a fault')\n\n"
        f"def pytest_runtest_setup(item):\n    module.{name} = broken\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    done = quick.run("test_it.py", "-q", "--perf-report", tmp_path / "r.md", cwd=tmp_path)
    assert done.status == 0, done.output
    assert "no report: " in done.output
    assert said in done.output
    assert "a fault" in done.output


@pytest.mark.slow
def test_a_recorded_baseline_and_a_paired_run_are_reported(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    path, common = tmp_path / "r.json", (*SIMULATOR, "speed=5", "--perf-workloads", small, "--perf-report")
    record = ("--perf-baselines", tmp_path / "b", "--update-baselines", "--perf-sessions", "2")
    done = quick.run("perf_tests/test_regression.py", "-q", *common, path, *record)
    assert done.status == 0, done.output
    head = report_of(path).headline
    assert (head.verdict, head.title) == ("PASS", "A new baseline is recorded")
    assert "stored 2 sessions" in head.how_much
    paired = ("--perf-reference-config", "", "--perf-blocks", "5", "--perf-requests", "4")
    done = quick.run("perf_tests/test_regression.py", "-q", *common, path, *paired)
    gate = report_of(path).gate
    assert gate is not None, done.output
    assert (gate.unit, gate.against) == ("block", "a reference measured beside it")
    assert report_of(path).environment.reference["engine"] == "phasegate-simulator"


def test_a_probe_draws_the_phases_of_its_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from xml.etree import ElementTree

    from phasegate.engines.simulator.config import SimulatorConfig
    from phasegate.engines.simulator.engine import SimulatorEngine

    picture = tmp_path / "request.svg"
    with SimulatorEngine(SimulatorConfig(speed=5.0)) as engine:
        common = ["probe", "--base-url", engine.base_url, "--model", engine.model, "--max-tokens", "6", "--svg"]
        assert main([*common, str(picture)]) == 0
        sent = len(engine.truths())
        for wrong in (tmp_path / "request.png", tmp_path / "gone" / "request.svg"):
            assert main([*common, str(wrong)]) == 2
        assert len(engine.truths()) == sent, "a wrong name must be refused before anything is sent"
    text = picture.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "x 5 = " in text
    assert capsys.readouterr().err.count("name a file that ends in .svg") == 2
