"""Faults of the machine and of our own under pytest: one line and 15, never 1 and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.edges.quick_pytest import QuickPytest
from tests.loopback import Loopback
from tests.situations.planted import planted

MEASURES = "def test_it_measures(perf_run):\n    perf_run('small')\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with planted() as running:
        yield running


@pytest.fixture
def run(quick: QuickPytest, one_workload: Callable[[], Path], server: Loopback) -> Callable[..., tuple[int, str]]:
    """Runs one test file of a suite's own, beside an own conftest, and gives the status and what was printed."""

    def go(test: str, *options: str, plant: str = "", **environment: str) -> tuple[int, str]:
        folder = one_workload()
        (folder / "perf_tests" / "test_own.py").write_text(test)
        (folder / "perf_tests" / "conftest.py").write_text(plant)
        words = ("perf_tests/test_own.py", "--perf-base-url", server.base_url, "--perf-model", "m", *options)
        done = quick.run(*words, cwd=folder, **environment)
        return done.status, done.output

    return go


def one_line(output: str, said: str) -> None:
    assert said in output
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    assert "\nE  " not in output


BROKEN = "import phasegate.{module}\n\ndef broken(*_, **__):\n    raise TypeError('planted')\n\n"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("measure.session_runner", "phasegate.measure.session_runner.SessionRunner.measure"),
        ("measure.connect", "phasegate.measure.connect.client_identity"),
        ("report.summary", "phasegate.report.summary.write_summary"),
        ("pytest_plugin.state", "phasegate.pytest_plugin.state.PerfState.close"),
        ("pytest_plugin.state", "phasegate.pytest_plugin.state.read_workloads"),
    ],
)
def test_an_error_of_ours_is_one_line_and_15(run: Callable[..., tuple[int, str]], module: str, name: str) -> None:
    """While measuring, opening, summing up, closing, and before anything is started."""
    # What is patched stands for a bug of ours, so it has to lie in a file of ours.
    plant = BROKEN.format(module=module).replace(
        "def broken(*_, **__):\n    raise TypeError('planted')\n",
        "from phasegate.core import faults\ncode = compile(\"def broken(*_, **__): raise TypeError('planted')\", "
        "faults.__file__, 'exec')\nexec(code)\n",
    )
    status, output = run(MEASURES, plant=f"{plant}{name} = broken\n")
    assert status == 15, output
    one_line(output, "TypeError: planted")
    assert "PHASEGATE_TRACEBACK=1" in output


def test_a_bug_in_the_users_own_test_stays_pytests_failure(run: Callable[..., tuple[int, str]]) -> None:
    """Their assertion and their error are 1, with pytest's own account of them; what they call of us wrongly is not."""
    for body, shown in (("assert 1 == 2", "assert 1 == 2"), ("{}['x']", "KeyError: 'x'")):
        status, output = run(f"def test_theirs(perf_run):\n    perf_run('small')\n    {body}\n")
        assert status == 1, output
        assert shown in output
    status, output = run("def test_theirs(perf_run):\n    perf_run('small').cell('nowhere')\n")
    assert status == 15, output
    assert "has no role 'nowhere'" in output


def test_the_traceback_is_there_for_who_asks(run: Callable[..., tuple[int, str]]) -> None:
    """By the variable that the line names."""
    status, output = run("def test_x(perf_run):\n    perf_run('small').cell(1)\n", PHASEGATE_TRACEBACK="1")
    assert status == 15
    assert "Traceback (most recent call last)" in output


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_time_limit_of_pytest_timeout_is_15(run: Callable[..., tuple[int, str]], method: str) -> None:
    """It says nothing of the server; by its thread it would end the process with 1."""
    pytest.importorskip("pytest_timeout")
    test = "import time\n\ndef test_slow(perf_run):\n    perf_run('small')\n    time.sleep(30)\n"
    status, output = run(test, "-o", "timeout=1.5", "--timeout-method", method)
    assert status == 15, output
    one_line(output, "the time limit of pytest-timeout (1.5 s) ended the measurement")


FULL = (
    "import os, errno\n\ndef full(_):\n    raise OSError(errno.ENOSPC, 'No space left on device')\n\nos.fsync = full\n"
)


@pytest.mark.parametrize(
    "options",
    [("--perf-report", "out/r.json"), ("--perf-save-sessions", "out"), ("--update-baselines", "--perf-baselines", "b")],
)
def test_a_full_disk_is_found_before_anything_is_measured(
    quick: QuickPytest, one_workload: Callable[[], Path], server: Loopback, options: tuple[str, ...]
) -> None:
    """C043's kind without root; nothing was sent and nothing is left behind."""
    folder = one_workload()
    (folder / "perf_tests" / "test_own.py").write_text(MEASURES)
    with (folder / "conftest.py").open("a") as conftest:
        conftest.write(FULL)
    before, sent = sorted(folder.iterdir()), len(server.log)
    words = ("perf_tests/test_own.py", "--perf-base-url", server.base_url, "--perf-model", "m")
    done = quick.run(*words, *options, cwd=folder, PYTHONDONTWRITEBYTECODE="1")
    assert done.status == 15, done.output
    one_line(done.output, "the disk is full")
    assert len(server.log) == sent
    assert [one for one in sorted(folder.iterdir()) if one.name not in ("__pycache__", ".benchmarks")] == before


def test_results_that_another_plugin_cannot_write_are_15(run: Callable[..., tuple[int, str]]) -> None:
    """A full disk under --junitxml, say, which pytest itself would end with 1 and a traceback."""
    plant = (
        "import errno\n\n"
        "def pytest_sessionfinish():\n"
        "    raise OSError(errno.ENOSPC, 'No space left', '/x/junit.xml')\n"
    )
    status, output = run(MEASURES, plant=plant)
    assert status == 15, output
    one_line(output, "/x/junit.xml: the disk is full")


PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:randomly", "-q")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirection", "status"), [(">&-", 0), (">/dev/full", 15), ("| head -1", 0), ("2>&- >&- <&-", 0)]
)
def test_a_run_goes_on_without_its_output(
    one_workload: Callable[[], Path], server: Loopback, redirection: str, status: int
) -> None:
    """Nobody reads it to the end, or it cannot be written: the status is the measurement's, or 15."""
    folder = one_workload()
    (folder / "perf_tests" / "test_own.py").write_text(MEASURES)
    words = (*PYTEST, "perf_tests/test_own.py", "--perf-base-url", server.base_url, "--perf-model", "m")
    line = f"set -o pipefail; {' '.join(words)} {redirection}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes a user without a name, which only root can")
def test_a_user_without_a_name_and_a_home(tmp_path: Path) -> None:
    """C025: the embedded engine, which keeps a model, says what to set."""
    words = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", "--inh-caps=+dac_read_search"]
    words += [
        "--ambient-caps=+dac_read_search",
        "env",
        "-u",
        "HOME",
        "-u",
        "XDG_CACHE_HOME",
        "-u",
        "PHASEGATE_CACHE_DIR",
    ]
    words += ["PYTHONDONTWRITEBYTECODE=1", sys.executable, "-m", "phasegate", "probe", "--max-tokens", "4"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "setpriv" in done.stderr:
        pytest.skip(f"no user can be changed here: {done.stderr.strip()}")
    assert done.returncode == 5, done.stderr
    assert "set PHASEGATE_CACHE_DIR" in done.stderr or "phasegate[local]" in done.stderr
    assert len(done.stderr.splitlines()) == 1
