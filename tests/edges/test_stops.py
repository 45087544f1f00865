"""However a measuring run ends, its engine ends with it, and what was measured until then is shown."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.edges.quick_pytest import ROOT

LIMIT = 10.0
"""Seconds an engine may outlive the run."""

ENGINES = {"embedded": "phasegate.engines.llama_process", "simulator": "phasegate.engines.simulator"}
"""Engine -> the module that its process runs."""

ABORTING = """
import os

def test_measure_and_abort(perf_lab):
    os.abort()
"""


@contextmanager
def running(engine: str, *options: str | Path) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """A pytest run in a process group of its own, and the process of the engine that it started."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--perf-engine", engine, *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        child = None
        try:
            child = engine_of(run, ENGINES[engine])
            yield run, child
        finally:
            run.kill()
            if child is not None and child.is_running():
                child.kill()


def engine_of(run: subprocess.Popen[str], module: str) -> psutil.Process:
    """The engine among the run's children, once it is there."""
    parent, deadline = psutil.Process(run.pid), time.monotonic() + 60
    while time.monotonic() < deadline and run.poll() is None:
        for child in parent.children():
            with contextlib.suppress(psutil.Error):
                if module in child.cmdline():
                    return child
        time.sleep(0.05)
    raise AssertionError(f"no engine came: {run.communicate()[0]}")


def is_gone(process: psutil.Process) -> bool:
    """Whether it ends in time; one that nobody has collected yet counts as ended."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def wait_until_busy(process: psutil.Process, seconds: float) -> None:
    """Until the engine has computed that long, so that a signal comes in mid-measurement."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.cpu_times().user > seconds:
            return
        time.sleep(0.02)
    raise AssertionError("nobody asked the engine for anything")


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A workload that would take a quarter of an hour."""
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "small.yaml").write_text(
        "input_tokens: 64\noutput_tokens: 64\nrequests: 2000\nwarmups: 0\n"
    )
    return tmp_path / "workloads"


@pytest.mark.engine
def test_ctrl_c_shows_what_was_measured_and_stops_the_engine(endless: Path) -> None:
    """The signal goes to the whole group, as a terminal sends it."""
    with running("embedded", "perf_tests/test_rows.py", "--perf-workloads", endless) as (run, engine):
        wait_until_busy(engine, 2.5)
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=30)
        assert is_gone(engine)
    assert run.returncode == 2, output
    assert "KeyboardInterrupt" in output
    assert "PARTIAL: stopped after " in output
    assert "llama.cpp" in output


@pytest.mark.engine
def test_a_killed_run_leaves_no_engine(endless: Path) -> None:
    """In mid-measurement."""
    with running("embedded", "perf_tests/test_rows.py", "--perf-workloads", endless) as (run, engine):
        wait_until_busy(engine, 0.6)
        run.kill()
        run.communicate(timeout=30)
        assert is_gone(engine)


def test_a_run_that_crashes_leaves_no_engine(endless: Path, tmp_path: Path) -> None:
    """A test that takes the interpreter down with it."""
    (tmp_path / "test_abort.py").write_text(ABORTING)
    options = (tmp_path / "test_abort.py", "--perf-workloads", endless, "-p", "no:faulthandler")
    with running("simulator", *options) as (run, engine):
        run.communicate(timeout=60)
        assert run.returncode == -signal.SIGABRT
        assert is_gone(engine)
