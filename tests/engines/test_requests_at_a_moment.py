"""How many requests ran and waited while a level of load was measured, against what must have been so."""

from __future__ import annotations

import pytest

from phasegate.core.load_plan import LevelPlan
from phasegate.core.workload import parse_workload
from phasegate.report.server_lines import level_lines
from tests.load_runs import load_lab_on

pytest.importorskip("prometheus_client")

USERS = 6


@pytest.mark.parametrize(("slots", "running"), [(2, 2.0), (16, 6.0)])
def test_users_who_are_answered_in_turns_run_or_wait(slots: int, running: float) -> None:
    """Six users who ask again at once: so many as have a slot run, and all others wait.

    The gauges of the page, which was read when all was over, say that nobody did either.
    """
    workload = parse_workload("input_tokens: 64\noutput_tokens: 64\nrequests: 6\nwarmups: 0\n", "users.yaml")
    with load_lab_on(max_sequences=slots, speed=4.0) as load:
        (run,) = load.measure_levels(workload, [LevelPlan(USERS, 1, 5 * USERS)]).values()
        lines = list(level_lines(load))
    assert run.server is not None
    assert (run.server.gauges["running"], run.server.gauges["waiting"]) == (0, 0)
    ran, waited = run.server.mean_running(run.window), run.server.mean_waiting(run.window)
    assert ran is not None
    assert waited is not None
    # Less at the end of the level, when no user asks again.
    assert ran == pytest.approx(running, rel=0.2)
    assert waited == pytest.approx(USERS - running, abs=1.0)
    assert f"on average {ran:.1f} running and {waited:.1f} waiting in the server" in " ".join(lines)
