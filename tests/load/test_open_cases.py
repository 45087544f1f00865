"""Cases of the client that the closed and the open loop share: retries, connections given back, the client's own cost.

B066 attempts, B112 connections, B114 the harness against a server of known timing, B115 no work between tokens.
"""

import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from phasegate.core.metric import Undefined, time_to_first_token
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.engines.simulator.truth import Sent, Truth
from phasegate.load.answer import unframe
from phasegate.load.closed import run_closed
from phasegate.load.open_loop import run_open
from phasegate.measure.own_error import OwnError, measure_own_error, own_error_of
from phasegate.wire.openai_stream import decode
from tests.loopback import Answer, Loopback, Served, steady
from tests.timelines import timeline
from tests.wire.cases import FIXTURES


def requests(count: int) -> list[Request]:
    return [Request(f"r{number}", "chat", {"messages": []}) for number in range(count)]


def attempts() -> list[Answer]:
    """The answers of case B066 in order; the second follows at once, since nobody waits for it."""
    case = yaml.safe_load((FIXTURES / "cases" / "B066.yaml").read_text(encoding="utf-8"))
    return [
        Answer(
            pieces=[(event["at_ms"] / 1e3, event["data"].encode()) for event in one["events"]],
            status=one["http_status"],
            headers=list(one.get("headers", {}).items()),
        )
        for one in case["input"]["attempts"]
    ]


def test_a_throttled_request_is_a_failure_and_no_attempt_is_hidden_in_its_latency() -> None:
    """The next request gets the second answer and is an ordinary one: 120 ms, not 1,135 (case B066)."""
    answers = itertools.cycle(attempts())
    with Loopback(lambda _: next(answers)) as server:
        result = run_closed(Target(server.base_url, "m"), requests(2), max_concurrency=1)
        seen = len(server.log)
    throttled, served = map(decode, result.recordings)
    assert seen == 2
    assert (throttled.status, throttled.sample_valid) == ("error", False)
    assert isinstance(time_to_first_token(throttled), Undefined)
    ttft = time_to_first_token(served)
    assert served.status == "ok"
    assert served.output_tokens == 2
    assert not isinstance(ttft, Undefined)
    assert 0.12 <= ttft < 1.0


@pytest.mark.parametrize("run", ["closed", "open"])
def test_three_streams_through_two_places_need_no_connection_of_each_other(run: str) -> None:
    """Each is read to its end while the server keeps its connections alive; the third starts at once (case B112)."""
    with Loopback(steady(3, first=0.02, gap=0.01, keep_alive=True)) as server:
        target = Target(server.base_url, "m", connect_timeout=5.0)
        if run == "closed":
            result = run_closed(target, requests(3), max_concurrency=2)
        else:
            result = run_open(target, [(0.0, request) for request in requests(3)], max_concurrency=2)
        opened = server.connections
    assert [decode(recording).status for recording in result.recordings] == ["ok"] * 3
    assert opened == 3
    first_free = min(recording.ended_at for recording in result.recordings)
    last_sent = max(recording.sent or 0.0 for recording in result.recordings)
    assert last_sent - first_free < 2.0


def test_nothing_is_parsed_between_the_first_byte_and_the_last_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither transfer coding nor JSON: all of that happens after the window has ended (case B115)."""
    main = threading.current_thread()
    moments: list[float] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if threading.current_thread() is main:
                moments.append(time.monotonic())
            return function(*args, **named)

        return call

    def script(_: Served) -> Answer:
        return steady(5, first=0.02, gap=0.01)

    monkeypatch.setattr("phasegate.load.client.unframe", noted(unframe))
    monkeypatch.setattr(json, "loads", noted(json.loads))
    with Loopback(script) as server:
        result = run_closed(Target(server.base_url, "m"), requests(6), max_concurrency=3)
        for recording in result.recordings:
            decode(recording)
    # Not everything was forbidden to happen, or the check would hold for a client that does nothing.
    assert len(moments) >= 6
    first_byte = min(recording.reads[0].at for recording in result.recordings)
    assert not [moment for moment in moments if first_byte <= moment <= result.ended]


def test_the_clients_own_error_is_measured_at_the_tested_concurrency() -> None:
    """Against a server of known timing, nothing lost (case B114); wide bounds, the machine is shared."""
    found = measure_own_error(8)
    assert (found.concurrency, found.requests, found.lost) == (8, 16, 0)
    assert 0 < found.ttft_p50 < 0.1
    assert found.ttft_p50 <= found.ttft_p99
    assert 0 <= found.tpot_p50 < 0.2
    assert set(found.as_json()) >= {"ttft_p50", "ttft_p99", "tpot_p50", "lost"}


def truth(number: int, *, arrived: float, first: float, gap: float) -> Truth:
    chunks = [Sent(0.0, first + place * gap, place, 1) for place in range(5)]
    return Truth(number, arrived, 0.0, chunks=chunks)


def test_the_error_is_what_the_client_saw_beyond_what_the_server_did() -> None:
    """Sent at 100, arrived at 100.002, left at 100.090, seen at 100.100: 12 ms too long; gaps 25 % too long."""
    pairs = [(timeline(ttft=0.1, tpot=0.0125), truth(1, arrived=100.002, first=100.09, gap=0.01))]
    found = own_error_of(4, 1, pairs)
    assert found.ttft_p50 == pytest.approx(0.012)
    assert found.tpot_p50 == pytest.approx(0.25)


def test_lost_requests_are_never_a_small_error() -> None:
    """One of two lost: the p99 is infinite."""
    pairs = [(timeline(), truth(1, arrived=100.0, first=100.1, gap=0.01))]
    found = own_error_of(4, 2, pairs)
    assert found.lost == 1
    assert found.ttft_p99 == float("inf")
    assert "1 of 2 requests" in (found.problem() or "")


def test_an_error_that_is_a_material_share_of_a_tolerance_is_said() -> None:
    """4 ms of 10 ms is too much, 4 ms of 50 ms is not; the same for TPOT (case B114)."""
    error = OwnError(64, 64, 0, ttft_p50=0.004, ttft_p99=0.02, tpot_p50=0.01)
    assert error.problem() is None
    assert error.problem(ttft_tolerance=0.05, tpot_tolerance=0.05) is None
    assert "adds 4.00 ms to TTFT at 64 at a time" in (error.problem(ttft_tolerance=0.01) or "")
    assert "moves TPOT by 1.0 %" in (error.problem(tpot_tolerance=0.02) or "")
