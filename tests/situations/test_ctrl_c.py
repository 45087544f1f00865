"""Ctrl-C ends a run and a command wherever it comes: before, between and inside measured requests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from phasegate.cli import main
from phasegate.core.load_plan import LevelPlan
from phasegate.core.workload import parse_workload
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from tests.loopback import Loopback
from tests.situations.planted import Oddities, planted

CHAT = parse_workload("input_tokens: 64\noutput_tokens: 8\nrequests: 2\nwarmups: 2\n", "chat.yaml")
"""Four requests: two that warm up, two that are measured."""


class CtrlC:
    """Presses Ctrl-C while an answer is on its way."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, _: int) -> None:
        """An answer begins."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


class Killer:
    """Watches a workload and kills its server after so many answers."""

    shows_ttft = False

    def __init__(self, server: Loopback, after: int) -> None:
        self._server, self._after = server, after

    def __call__(self, workload: str, done: int, planned: int, ttft_p50: float | None) -> None:  # noqa: ARG002
        """One more request ended."""
        if done == self._after:
            self._server.kill()


@contextmanager
def lab_stopped_at(request: int) -> Iterator[SessionRunner]:
    """A lab whose user presses Ctrl-C at that request, those that count prompt tokens apart."""
    keys = CtrlC()
    with (
        planted(Oddities(gap=0.004, before=keys)) as server,
        connect(EngineOptions(base_url=server.base_url, seed=3)) as runner,
    ):
        runner.calibration("chat")
        keys.left = request
        yield runner


@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_ctrl_c_ends_a_workload_also_while_it_warms_up(request_number: int) -> None:
    """A warm-up that Ctrl-C gave up was taken for one that failed, and the run went on to its end with status 0."""
    with lab_stopped_at(request_number) as runner:
        with pytest.raises(KeyboardInterrupt):
            runner.measure(CHAT)
        assert [run.partial for run in runner.runs.values()] == ([True] if request_number > 2 else [])


@pytest.mark.parametrize("request_number", [1, 2, 3])
def test_ctrl_c_ends_a_load_also_while_it_warms_up(request_number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same under load."""
    with lab_stopped_at(request_number) as runner:
        load = LoadRunner(runner)
        monkeypatch.setattr(load, "calibrate", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            load.measure_levels(CHAT, [LevelPlan(1, 2, 1)])


def test_ctrl_c_ends_a_probe_with_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    """130, as every command; it was 5, a request that failed."""
    keys = CtrlC()
    keys.left = 2
    with planted(Oddities(gap=0.004, before=keys)) as server:
        url = server.base_url
        status = main(["probe", "--base-url", url, "--model", "m", "--max-tokens", "8", "--requests", "3"])
    assert status == 130
    said = capsys.readouterr()
    assert "request 1: " in said.out
    assert said.err.splitlines()[-1] == "stopped"


def test_a_server_that_is_gone_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the plan is not sent then, which was taken for a user who stopped the run."""
    monkeypatch.setattr("phasegate.load.driving.GONE_SECONDS", 0.0)
    monkeypatch.setattr("phasegate.load.driving.GONE_AFTER", 1)
    many = parse_workload("input_tokens: 64\noutput_tokens: 4\nrequests: 150\nwarmups: 0\n", "chat.yaml")
    with planted() as server, connect(EngineOptions(base_url=server.base_url, seed=3)) as runner:
        runner.calibration("chat")
        runner.progress = Killer(server, 140)
        with pytest.raises(MeasurementError, match=r"requests failed .*connect_failed"):
            runner.measure(many)
