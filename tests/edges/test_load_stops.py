"""A load that does not come to its end says how far it came: after Ctrl-C, and after its server was killed."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.edges.test_stops import is_gone, running, wait_until_busy

pytestmark = pytest.mark.slow

ENDLESS = (
    "perf_tests/test_slo.py", "--perf-engine-config", "speed=5", "--perf-concurrency", "16", "--perf-load-requests",
    "4000", "--perf-slo", "ttft:p50:5s",
)  # fmt: skip


def in_the_middle(engine: psutil.Process) -> None:
    """Wait until the engine has served for a while."""
    wait_until_busy(engine, engine.cpu_times().user + 0.6)


def test_ctrl_c_shows_the_load_measured_until_then() -> None:
    """As partial, judged by nobody, and both simulators end: the engine's and that of the client's calibration."""
    with running("simulator", *ENDLESS) as (run, engine):
        in_the_middle(engine)
        os.killpg(run.pid, signal.SIGINT)
        output, _ = run.communicate(timeout=60)
        assert is_gone(engine)
    assert run.returncode == 2, output
    assert "16 at a time: PARTIAL: stopped after " in output
    assert "INVALID: the run was stopped after" in output
    assert "the client's own error:" in output
    assert " passed" not in output


def test_a_killed_server_ends_the_run_with_what_was_measured() -> None:
    """In one line with the reason, without a traceback, and as INVALID_RUN."""
    with running("simulator", *ENDLESS) as (run, engine):
        in_the_middle(engine)
        engine.kill()
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 15, output
    assert "Traceback" not in output
    assert "16 at a time: the server" in output
    assert "connect_failed" in output
    assert "1 invalid_run" in output
