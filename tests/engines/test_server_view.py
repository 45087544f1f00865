"""A lab that reads its server's own counters around every workload, on a simulated server that knows the truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from phasegate.core.identity import client_identity
from phasegate.core.target import Target
from phasegate.core.workload import Workload, parse_workload
from phasegate.engines.metrics.page import MetricsPages, Page
from phasegate.engines.profile import profile_for
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.measure_session import session_of
from phasegate.measure.server_metrics import impossible, observed
from phasegate.measure.session_runner import SessionRunner
from phasegate.report.server_lines import server_lines, server_rows

pytest.importorskip("prometheus_client")


def small(name: str = "small", prefix: str = "unique") -> Workload:
    """Six requests of 64 tokens, and warm-ups that no counter may hold."""
    text = f"input_tokens: 64\noutput_tokens: 4\nrequests: 6\nwarmups: 3\nprefix: {prefix}\n"
    return parse_workload(text, f"{name}.yaml")


@contextmanager
def lab_on(config: SimulatorConfig) -> Iterator[SessionRunner]:
    """A lab on a simulated server."""
    with SimulatorEngine(config) as engine:
        server = engine.identity()
        target = Target(base_url=engine.base_url, model=engine.model, timeout=30.0, idle_timeout=10.0)
        yield SessionRunner(engine, server, client_identity(), profile_for(server), target, seed=1)


def test_the_servers_counters_hold_the_measured_requests_and_nothing_else() -> None:
    """Neither warm-ups nor the requests that count tokens; and twice as many after measuring as often again."""
    with lab_on(SimulatorConfig(seed=1)) as runner:
        run = runner.measure(small())
        assert run.server is not None
        assert run.server.grown["requests"] == 6
        assert run.server.grown["prompt_tokens"] == sum(line.prompt_tokens or 0 for line in run.timelines())
        assert run.server.mean("ttft") is not None
        longer = runner.extend(small())
        assert longer.server is not None
        assert longer.server.grown["requests"] == 12


def test_a_server_that_is_not_read_leaves_the_numbers_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page cannot be had there is one note, no counts, and the same measurement."""
    monkeypatch.setattr(MetricsPages, "read", lambda _: Page({}, "the server's own counters were not read: closed"))
    with lab_on(SimulatorConfig(seed=1)) as runner:
        run = runner.measure(small())
        assert run.server is None
        assert observed(runner.server_metrics, [run]) == {}
        lines = server_lines(runner.server_metrics, [run], 100, colour=False)
        assert [line for line in lines if "were not read: closed" in line] == lines
        assert len(lines) == 1
        assert run.problem() is None


def test_the_servers_means_stand_in_the_summary_and_in_the_session() -> None:
    """The simulator's clock beside ours, the cache hits it counted, and the same in the session's facts."""
    with lab_on(SimulatorConfig(seed=1)) as runner:
        runs = [runner.measure(small()), runner.measure(small("again", "repeated"))]
        lines = server_lines(runner.server_metrics, runs, 100, colour=False)
        (row,) = server_rows(runs[0], runner.server_metrics)
        session = session_of(runner, runs, None)
    assert row.label == "small, mean"
    assert row.split.server is not None
    # The simulator's first token is due before the client can have it.
    assert 0 < row.split.server < row.split.client
    assert any("of prompt tokens from the prefix cache" in line for line in lines if line.startswith("again: "))
    told = session.server["observed"]
    assert told["small"]["counted"]["grown"]["requests"] == 6
    assert told["small"]["counted"]["reset"] == []


def test_a_simulator_that_runs_faster_tells_the_time_as_its_client_counts_it() -> None:
    """Four simulated seconds in a real one; the page's seconds are real ones."""
    with lab_on(SimulatorConfig(seed=1, speed=4.0)) as runner:
        run = runner.measure(small())
        (row,) = server_rows(run, runner.server_metrics)
    assert row.split.server is not None
    assert 0 < row.split.server < row.split.client
    assert impossible(run) is None


def test_a_servers_time_beyond_the_clients_is_refused_in_one_line() -> None:
    """Shown failing: the same counts four times as long make no row, and a line says why."""
    with lab_on(SimulatorConfig(seed=1, prefill_tokens_per_second=2000.0)) as runner:
        run = runner.measure(small())
        assert run.server is not None
        longer = replace(run.server, grown={**run.server.grown, "ttft": 4 * run.server.grown["ttft"]})
        wrong = replace(run, server=longer)
        assert server_rows(wrong, runner.server_metrics) == []
        lines = server_lines(runner.server_metrics, [wrong], 200, colour=False)
        assert impossible(run) is None
    assert [line for line in lines if "the server's own clock says more than the client measured" in line] == lines


def test_what_was_observed_does_not_key_a_baseline() -> None:
    """Two sessions that observed other numbers belong to one fingerprint."""
    with lab_on(SimulatorConfig(seed=1)) as runner:
        first = session_of(runner, [runner.measure(small())], None)
        second = session_of(runner.renewed(), [], None)
    assert first.server["observed"]
    assert "observed" not in second.server
    assert first.fingerprint == second.fingerprint


def test_timings_in_answers_are_split_cell_by_cell() -> None:
    """As llama.cpp sends them; the simulator's stand for its own prefill and its own steps."""
    with lab_on(SimulatorConfig(seed=1, report_timings=True)) as runner:
        run = runner.measure(small())
        (row,) = server_rows(run, runner.server_metrics)
        lines = server_lines(runner.server_metrics, [run], 100, colour=False)
    assert row.label == run.workload.cells[0].label
    assert row.split.prefill is not None
    assert row.decode is not None
    assert row.decode == pytest.approx(row.tpot, rel=0.5)
    # Labels in brackets are not taken for markup.
    assert any(row.label in line for line in lines)
