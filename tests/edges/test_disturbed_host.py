"""A busy host is named by the diagnosis before any phase, in every kind of run that watches it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from phasegate.diagnose import diagnose
from phasegate.pytest_plugin.diagnosis import observations_of_run
from phasegate.pytest_plugin.state import PerfState
from tests.gate.test_server_times import run
from tests.sessions import session

BUSY = "other processes used 1.66 cores (limit 0.25)"


def state(**known: Any) -> Any:
    """A run that measured one slow workload, and what it knows of its host."""
    runner = SimpleNamespace(runs={"chat": run(0.9, None)})
    options = SimpleNamespace(objectives=())
    return SimpleNamespace(
        **{"runner": runner, "load": None, "gate": None, "load_options": options, "disturbed": None, **known}
    )


def gate(updates: tuple[str | None, ...] = (), candidate: tuple[str | None, ...] | None = None) -> Any:
    """A gate whose sessions were disturbed or not."""
    judged = None if candidate is None else SimpleNamespace(candidate=_sessions(candidate))
    return SimpleNamespace(updates=list(_sessions(updates)), gated=judged)


def _sessions(words: tuple[str | None, ...]) -> tuple[Any, ...]:
    return tuple(session(number, disturbed=word) for number, word in enumerate(words))


@pytest.mark.parametrize(
    "known",
    [{"gate": gate(updates=(None, BUSY))}, {"gate": gate(candidate=(BUSY, BUSY))}, {"gate": gate(), "disturbed": BUSY}],
    ids=["updating baselines", "gated", "only measuring"],
)
def test_doubts_about_the_host_come_before_the_slow_phase(known: dict[str, Any]) -> None:
    """Once, whatever kind of run it is."""
    now = observations_of_run(state(**known))
    assert now is not None
    assert now.host == (BUSY,)
    assert [one.rule for one in diagnose(now).found] == ["client-or-host", "slow-start"]


def test_a_quiet_host_is_not_doubted_and_judged_sessions_speak_for_themselves() -> None:
    """The watch over a whole run sees what the sessions have measured again."""
    for known in ({}, {"gate": gate(candidate=(None,)), "disturbed": BUSY}):
        now = observations_of_run(state(**known))
        assert now is not None
        assert now.host == ()


def test_the_host_is_asked_while_the_engine_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine used counts as foreign once it is gone."""
    running: list[bool] = []

    @contextmanager
    def opened(*_: object) -> Iterator[Any]:
        engine = [True]

        def report() -> Any:
            running.append(engine[0])
            return SimpleNamespace(disturbance=lambda: BUSY)

        runner = SimpleNamespace(engine=SimpleNamespace(can_restart=False), rate_limit=SimpleNamespace(say=print))
        yield SimpleNamespace(watch=SimpleNamespace(report=report), **vars(runner))
        engine[0] = False

    live = SimpleNamespace(say=print, clear=lambda: None, close=lambda: None)
    monkeypatch.setattr("phasegate.measure.connect.connect", opened)
    monkeypatch.setattr("phasegate.report.progress.progress_of", lambda *_: live)
    monkeypatch.setattr("phasegate.pytest_plugin.budget.make_plan", lambda *_: None)
    engine_options = SimpleNamespace(traffic=None)
    whole = PerfState(config=SimpleNamespace(), engine_options=engine_options, workloads={})  # type: ignore[arg-type]
    with whole.connect():
        assert running == []
    assert running == [True]
    assert whole.disturbed == BUSY
