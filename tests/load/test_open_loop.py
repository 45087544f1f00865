"""The open loop: on schedule whatever the server does, waits counted, nothing lost, whatever ends it."""

import asyncio
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import yaml

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.load.driving import LoadResult
from phasegate.load.link import Dialer, Link
from phasegate.load.open_loop import run_open
from phasegate.load.pacing import Rate, even, poisson
from phasegate.wire.openai_stream import decode
from tests.loopback import Answer, Loopback, Served, steady
from tests.wire.cases import FIXTURES


def requests(count: int) -> list[Request]:
    return [Request(f"r{number}", "chat", {"messages": [], "user": f"r{number}"}) for number in range(count)]


def at(offsets: Sequence[float]) -> list[tuple[float, Request]]:
    return list(zip(offsets, requests(len(offsets)), strict=True))


def values(result: LoadResult, metric: str) -> list[float]:
    measured = [metric_named(metric).measure(decode(recording)) for recording in result.recordings]
    return [value for value in measured if not isinstance(value, Undefined)]


def test_requests_are_due_on_schedule_and_sent_after_they_are_due() -> None:
    """Due moments are exactly the schedule's; no request is early; the order given is the order returned."""
    offsets = (0.2, 0.0, 0.1, 0.1)
    with Loopback(steady(2, first=0.3, gap=0.01)) as server:
        result = run_open(Target(server.base_url, "m"), at(offsets))
    assert [recording.request_id for recording in result.recordings] == ["r0", "r1", "r2", "r3"]
    assert [recording.due - result.started for recording in result.recordings] == pytest.approx(offsets, abs=1e-6)
    assert min(result.schedule_delays) >= 0
    assert result.peak_in_flight == 4
    assert result.concurrency_reached
    assert not result.partial


def test_the_rate_is_reached_although_answers_take_longer_than_the_gaps() -> None:
    """Fifty a second of 0.2 s each: nobody waits for anybody. The bound is wide, other work shares this machine."""
    with Loopback(steady(3, first=0.1, gap=0.05)) as server:
        result = run_open(Target(server.base_url, "m"), at(even(Rate.constant(50), 76)))
    assert result.requested_rate == pytest.approx(50)
    assert result.achieved_rate == pytest.approx(50, rel=0.05)
    assert result.mean_in_flight == pytest.approx(50 * 0.2, rel=0.35)
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}


def test_the_rate_is_reached_on_the_simulator() -> None:
    """Poisson arrivals at a server process of known timing; its log has every request at most once."""
    with SimulatorEngine(SimulatorConfig.from_words("batching=alone speed=4")) as engine:
        offsets = poisson(Rate.constant(30), 45, np.random.default_rng(5))
        body = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 8}
        schedule = [(offset, Request(f"r{n}", "chat", body)) for n, offset in enumerate(offsets)]
        result = run_open(Target(engine.base_url, "simulated"), schedule)
        truths = engine.truths()
    assert result.achieved_rate == pytest.approx(result.requested_rate, rel=0.05)
    assert len(truths) == 45
    assert [decode(recording).output_tokens for recording in result.recordings] == [8] * 45


CAP = yaml.safe_load((FIXTURES / "cases" / "B078.yaml").read_text(encoding="utf-8"))


def scaled(key: str) -> float:
    """A time of case B078 in seconds, played five times as fast."""
    return float({**CAP["input"], **CAP["expected"]}[key]) / 5000


def test_a_cap_makes_due_requests_wait_and_the_wait_is_seen() -> None:
    """Counted from the schedule the case's 1900 ms, from the dispatch its 500 ms (case B078, five times as fast).

    Waiting can only be longer than planned, so these lower bounds hold on a busy machine too; the case's exact figures
    are held in test_client_cases.
    """
    case = CAP["input"]
    offsets = [number * scaled("interval_ms") for number in range(case["n"])]
    with Loopback(steady(1, first=scaled("service_ms"), gap=0)) as server:
        result = run_open(Target(server.base_url, "m"), at(offsets), max_concurrency=case["concurrency"])
    from_due, from_sent, delays = (values(result, name) for name in ("e2el_from_due", "e2el", "delay"))
    assert statistics.mean(from_due) >= scaled("e2e_from_schedule_mean_ms")
    assert statistics.mean(delays) >= scaled("dispatch_delay_mean_ms")
    assert max(delays) >= scaled("dispatch_delay_max_ms")
    assert min(from_sent) >= scaled("e2e_from_dispatch_mean_ms")
    assert statistics.mean(from_sent) < 0.5 * statistics.mean(from_due)
    assert from_due == pytest.approx([sent + delay for sent, delay in zip(from_sent, delays, strict=True)])
    assert result.peak_in_flight == 1
    assert (result.achieved_rate or 0) < 0.3 * (result.requested_rate or 0)


def pausing(pause: float, after: int) -> Callable[[Served], Answer]:
    """A server that answers at once, but from one request on answers nobody for a while."""
    seen, resumes = 0, 0.0

    def script(served: Served) -> Answer:
        nonlocal seen, resumes
        seen += 1
        if seen == after:
            resumes = served.received_at + pause
        return steady(1, first=max(resumes - served.received_at, 0.0), gap=0)

    return script


def test_a_server_that_pauses_cannot_hide_behind_the_requests_it_kept_from_being_sent() -> None:
    """A pause of one second at 20 requests a second: with one place, one request shows it from its send.

    Counted from when they were due, all those that users would have sent meanwhile show it: 14 were due 0.3 s or
    more before the pause ended.
    """
    with Loopback(pausing(1.0, after=5)) as server:
        capped = run_open(Target(server.base_url, "m"), at(even(Rate.constant(20), 40)), max_concurrency=1)
    from_due, from_sent = values(capped, "ttft_from_due"), values(capped, "ttft")
    assert sum(value > 0.3 for value in from_due) >= 14
    assert sum(value > 0.3 for value in from_sent) <= 4
    assert statistics.median(from_sent) < 0.15


def test_without_a_cap_the_pause_is_seen_from_the_send_as_well() -> None:
    """An open loop keeps sending into the pause, so both views agree."""
    with Loopback(pausing(0.6, after=5)) as server:
        result = run_open(Target(server.base_url, "m"), at(even(Rate.constant(20), 24)))
    assert sum(value > 0.3 for value in values(result, "ttft")) >= 6


def test_connections_are_opened_before_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handshake of 100 ms is not on the way of a request: all of it lies before the due moment."""
    engine_options = Dialer.open

    async def slow(self: Dialer, timeout: float | None) -> Link:
        await asyncio.sleep(0.1)
        return await engine_options(self, timeout)

    monkeypatch.setattr(Dialer, "open", slow)
    with Loopback(steady(1, first=0.01, gap=0)) as server:
        result = run_open(Target(server.base_url, "m"), at(even(Rate.constant(10), 6)))
    assert min(recording.connect_time or 0 for recording in result.recordings) >= 0.1
    assert statistics.median(result.schedule_delays) < 0.1


def test_a_server_that_dies_is_recorded_and_then_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in flight are incomplete, later ones refused; after enough of these the rest is not sent."""
    monkeypatch.setattr("phasegate.load.driving.GONE_SECONDS", 0.2)
    with Loopback(steady(1000, first=0.01, gap=0.01)) as server:

        def script(served: Served) -> Answer:
            if served.body["user"] == "r9":
                threading.Timer(0.05, server.kill).start()
            return steady(1000, first=0.01, gap=0.01)

        server.script = script
        result = run_open(Target(server.base_url, "m"), at(even(Rate.constant(50), 400)))
    endings = [recording.ending for recording in result.recordings]
    assert Ending.INCOMPLETE in endings
    assert endings[-1] is Ending.CONNECT_FAILED
    assert result.server_gone
    assert result.partial
    assert len(result.recordings) + len(result.unsent) == 400
    assert len(result.unsent) > 100


def test_ctrl_c_returns_what_was_measured_at_once() -> None:
    """Although the schedule would go on for minutes; those ahead are not sent."""

    def tell(place: int, _recording: Recording) -> None:
        if place == 2:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()

    # A shell's background jobs start with Ctrl-C ignored; whatever it was, it must be so again afterwards.
    before = signal.getsignal(signal.SIGINT)
    began = time.monotonic()
    with Loopback(lambda served: steady(1, first=0.3 if served.body["user"] == "r2" else 0.0, gap=0)) as server:
        result = run_open(Target(server.base_url, "m"), at((0.0, 0.05, 0.1, 60.0, 120.0)), on_done=tell)
    assert time.monotonic() - began < 20
    assert result.interrupted
    assert [recording.ending for recording in result.recordings[:3]] == [Ending.EOF] * 3
    assert "r4" in result.unsent
    assert len(server.log) == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_stop_begins_no_more_and_lets_those_in_flight_finish() -> None:
    """Requests waiting for a place are not begun either."""
    done: list[int] = []

    def tell(place: int, _recording: Recording) -> None:
        done.append(place)

    with Loopback(steady(2, first=0.03, gap=0.01)) as server:
        result = run_open(
            Target(server.base_url, "m"),
            at([0.0] * 20),
            max_concurrency=2,
            on_done=tell,
            stop=lambda: len(done) >= 4,
        )
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}
    assert 4 <= len(result.recordings) <= 6
    assert len(result.recordings) + len(result.unsent) == 20
    assert not result.interrupted


def test_a_callers_fault_ends_the_run_and_comes_out() -> None:
    """An exception in on_done is raised after everything was closed, without waiting for the schedule."""

    def tell(_place: int, _recording: Recording) -> None:
        raise RuntimeError("the caller's own")

    began = time.monotonic()
    with Loopback(steady(1, first=0, gap=0)) as server, pytest.raises(RuntimeError, match="the caller's own"):
        run_open(Target(server.base_url, "m"), at((0.0, 60.0)), on_done=tell)
    assert time.monotonic() - began < 20


def test_through_httpx2_the_schedule_holds_too() -> None:
    """Due moments are kept on the way for proxies."""
    with Loopback(steady(2, first=0.01, gap=0.01)) as server:
        target = Target(server.base_url, "m", transport="httpx2")
        result = run_open(target, at((0.0, 0.1, 0.2)))
    assert [recording.due - result.started for recording in result.recordings] == pytest.approx([0, 0.1, 0.2], abs=1e-6)
    assert min(result.schedule_delays) >= 0


def test_an_empty_schedule_is_an_empty_result() -> None:
    """Not an error, not a hang."""
    result = run_open(Target("http://127.0.0.1:9/v1", "m"), [])
    assert result.recordings == ()
    assert result.requested_rate is None


@pytest.mark.parametrize("offset", [-0.1, float("nan"), float("inf")])
def test_an_impossible_offset_is_refused(offset: float) -> None:
    """The error names the request."""
    with pytest.raises(ValueError, match="r0 is due"):
        run_open(Target("http://127.0.0.1:9/v1", "m"), at((offset,)))


def test_a_cap_below_one_is_refused() -> None:
    """The error names the number."""
    with pytest.raises(ValueError, match="concurrency 0"):
        run_open(Target("http://127.0.0.1:9/v1", "m"), at((0.0,)), max_concurrency=0)
