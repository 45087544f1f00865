"""Disaggregated serving seen from outside: the planted hand-off on the page, and workers behind a router as one."""

from __future__ import annotations

import http.client
import itertools
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest

from phasegate.core.metric import inter_chunk_latencies
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.measure.connect import EngineOptions, connect
from phasegate.report.server_lines import server_lines, server_rows
from phasegate.stats.workload_run import WorkloadRun
from tests.engines.front_doors import listening
from tests.engines.test_server_view import lab_on, small

pytest.importorskip("prometheus_client")


def pauses(run: WorkloadRun) -> list[float]:
    """Before the second token of each answer, as the client saw it."""
    return [inter_chunk_latencies(line)[0] for line in run.timelines()]


SPEED = 5.0


def test_a_planted_hand_off_of_80_ms_is_shown_as_80_ms() -> None:
    """In the client's seconds, on the page and in the summary; the client sees it as a pause and not in TTFT."""
    planted = 0.08
    config = SimulatorConfig(seed=1, disaggregated=True, handoff_seconds=planted * SPEED, speed=SPEED)
    with lab_on(config) as runner:
        run = runner.measure(small())
        (row,) = server_rows(run, runner.server_metrics)
        lines = server_lines(runner.server_metrics, [run], 100, colour=False)
    assert row.handoff == pytest.approx(planted, abs=1e-4)
    # A busy machine delivers a first token late now and then, which shortens the pause behind it.
    assert statistics.median(pauses(run)) > 0.8 * planted
    assert any("hand-off" in line and "TPOT" in line for line in lines)
    assert any("6 hand-offs of a KV cache, 80.0 ms each" in line for line in lines)


def test_one_pool_hands_nothing_over() -> None:
    """There is no column for it, and no line."""
    with lab_on(SimulatorConfig(seed=1, speed=SPEED)) as runner:
        run = runner.measure(small())
        (row,) = server_rows(run, runner.server_metrics)
        lines = server_lines(runner.server_metrics, [run], 100, colour=False)
    assert row.handoff is None
    assert not any("hand-off" in line for line in lines)


@contextmanager
def router(workers: Sequence[str]) -> Iterator[str]:
    """A server that passes each request on to the next worker, and has no metrics of its own."""
    turn = itertools.cycle(urlsplit(one).netloc for one in workers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            behind = http.client.HTTPConnection(next(turn))
            behind.request(self.command, self.path, body, {"content-type": "application/json"})
            answer = behind.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers.get("content-type", ""))
            self.send_header("connection", "close")
            self.end_headers()
            while piece := answer.read1(65_536):
                self.wfile.write(piece)
                self.wfile.flush()
            self.close_connection = True

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with listening(Handler) as root:
        yield f"{root}/v1"


def test_workers_behind_a_router_are_counted_as_one_server() -> None:
    """Each takes its share of the requests; together they counted what was sent, and both hand-offs are known."""
    config = SimulatorConfig(seed=1, disaggregated=True, handoff_seconds=0.04 * SPEED, speed=SPEED)
    with (
        SimulatorEngine(config) as one,
        SimulatorEngine(config.changed(handoff_seconds=0.08 * SPEED)) as other,
        router([one.address, other.address]) as url,
    ):
        engine_options = EngineOptions(
            url, engine="auto", seed=1, metrics_urls=(one.address, f"{other.address}/metrics")
        )
        with connect(engine_options) as runner:
            run = runner.measure(small())
            (row,) = server_rows(run, runner.server_metrics)
        shares = [len(engine.truths()) for engine in (one, other)]
    assert run.server is not None
    assert min(shares) > 0
    assert run.server.grown["requests"] == 6
    assert run.server.workers == 2
    assert row.split.server is not None
    assert 0 < row.split.server < row.split.client
    # Three requests each, taken in turns.
    assert row.handoff == pytest.approx(0.06, abs=1e-4)
    assert run.server.observed["handoff"] == 6


def test_without_their_pages_the_router_tells_nothing() -> None:
    """Which is what the option is for."""
    with (
        SimulatorEngine(SimulatorConfig(seed=1, speed=SPEED)) as one,
        router([one.address]) as url,
        connect(EngineOptions(url, engine="auto", seed=1)) as runner,
    ):
        run = runner.measure(small())
        assert run.server is None
        assert server_rows(run, runner.server_metrics) == []
