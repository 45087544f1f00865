"""The client's own error and mixes of workloads, in whole runs on the simulator."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from phasegate.core.load_plan import LevelPlan
from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_share import judge_level
from phasegate.gate.verdict import Verdict
from phasegate.load.exchange import Exchange
from tests.edges.quick_pytest import QuickPytest
from tests.load_runs import load_lab_on, small

SPEED = ("--perf-engine", "simulator", "--perf-engine-config", "speed=20")

WHOLE = parse_objective("e2el:p50:1ms", source="test")

USERS = small("concurrency", 64, 12)

MARGIN = 0.030
"""Seconds by which the objective is broken: a healthy client adds less than a quarter of that."""


@pytest.mark.parametrize("work", [0.0, 0.01])
def test_a_client_that_works_between_reads_judges_nobody(work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 ms of work for every read, as of a client that parses while it measures; without it the same run is judged.

    That the load was not reached is left out here: the client's error alone must say so.
    """
    received = Exchange.received

    def slowly(self: Exchange, at: float, data: bytes) -> None:
        received(self, at, data)
        time.sleep(work)

    monkeypatch.setattr(Exchange, "received", slowly)
    with load_lab_on() as load:
        run = load.measure_levels(USERS, [LevelPlan(4, 2, 12)])[4]
    assert run.client is not None
    assert run.client.own is not None
    # 17 misses of 24 prove that more than half miss.
    limit = sorted(run.samples("e2el"), reverse=True)[16] - MARGIN
    kept = judge_level(replace(WHOLE, limit=limit), replace(run, missed=None))
    assert (kept.verdict is Verdict.INVALID_RUN) is (work > 0), kept.reason
    if work:
        assert run.client.own.ttft_p50 + run.client.own.span_p50 > 0.01, "the calibration runs the same client"
        assert "the client itself" in kept.reason
        assert "of the margin of 30.0 ms" in kept.reason
        assert "lower the concurrency" in kept.reason


def test_a_mix_is_shown_by_workload_and_the_client_beside_it(quick: QuickPytest, tmp_path: Path) -> None:
    """Three to one, by rate and by users; the session that is saved afterwards tells the client's error."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "one.yaml").write_text("input_tokens: 64\noutput_tokens: 4\nrequests: 2\nwarmups: 0\n")
    done = quick.run(
        "perf_tests/test_arrivals.py", "perf_tests/test_slo.py", "perf_tests/test_regression.py", *SPEED,
        "--perf-workloads", tmp_path / "w", "--perf-baselines", tmp_path / "b", "--perf-save-sessions", tmp_path / "s",
        "--perf-concurrency", "4", "--perf-load-requests", "40", "--perf-request-rate", "80", "--perf-num-prompts",
        "40", "--perf-mix", "chat=3", "report=1",
    )  # fmt: skip
    rows = [line.split() for line in done.output.splitlines()]
    sent = [
        (row[0], row[1])
        for row in rows
        if len(row) > 6 and row[1].isdigit() and row[0] in ("4", "chat", "report", "80/s")
    ]
    assert sent == [("4", "40"), ("chat", "30"), ("report", "10"), ("80/s", "40"), ("chat", "30"), ("report", "10")]
    assert "the client's own error:" in done.output
    (saved,) = (tmp_path / "s").glob("*.json")
    errors = json.loads(saved.read_text())["machine_info"]["client"]["own_error"]
    assert {one["concurrency"] for one in errors} >= {4}
    assert all(one["ttft_p50"] > 0 and one["lost"] == 0 for one in errors)


def test_a_mix_of_a_workload_that_is_not_there_is_refused(quick: QuickPytest) -> None:
    """With the names of those that are."""
    done = quick.run("perf_tests/test_slo.py", *SPEED, "--perf-mix", "chat=3 raport=1")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "--perf-mix: no workload 'raport'; there are: chat, concurrency" in done.output
