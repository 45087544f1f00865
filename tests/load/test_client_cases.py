"""The cases of clients that measured themselves: the case's own moments in, the case's own figures out, exactly.

Elsewhere the same faults are played against the real client over a socket, where only bounds can hold; here its
arithmetic and its stamps are held to every number of the case.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
import yaml

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Read, Recording
from phasegate.load import reactor
from phasegate.load.driving import LoadResult
from phasegate.load.exchange import Exchange
from phasegate.load.health import LAG_LIMIT
from phasegate.load.load_check import load_problem
from phasegate.load.open_loop import run_open
from phasegate.load.pacing import Rate
from phasegate.load.reactor import Reactor
from phasegate.load.shapes import Shape
from phasegate.wire.openai_stream import decode
from tests.load.test_health import WELL
from tests.loopback import Loopback, event, steady, usage
from tests.wire.cases import FIXTURES


def case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a case gives, and what it expects."""
    found = yaml.safe_load((FIXTURES / "cases" / f"{name}.yaml").read_text(encoding="utf-8"))
    return found["input"], found["expected"]


def answered(number: int, due: float, sent: float, reads: Sequence[float]) -> Recording:
    """An answer of one token a read, moments in milliseconds; the last read brings the end as well."""
    bodies = [event(f"t{place} ") for place in range(len(reads))]
    bodies[-1] += usage(8, len(reads))
    return Recording(
        request_id=f"r{number}",
        due=due / 1e3,
        sent=sent / 1e3,
        connect_time=0.0,
        http_status=200,
        headers=(("content-type", "text/event-stream"),),
        headers_at=reads[0] / 1e3,
        reads=tuple(Read(at / 1e3, body) for at, body in zip(reads, bodies, strict=True)),
        ending=Ending.EOF,
        ended_at=reads[-1] / 1e3,
    )


def result_of(recordings: Sequence[Recording], asked: int | None, *, scheduled: bool) -> LoadResult:
    """The run whose requests these are; its peak is counted from their moments."""
    ends = [(one.ended_at, -1) for one in recordings]
    moves = sorted(ends + [(one.sent or 0.0, 1) for one in recordings])
    peak = int(max(np.cumsum([step for _, step in moves])))
    return LoadResult(tuple(recordings), WELL, asked, peak, 0.0, max(ends)[0], (), False, {}, scheduled)


def milliseconds(recordings: Sequence[Recording], metric: str) -> list[float]:
    """A metric of every request."""
    values = [metric_named(metric).measure(decode(one)) for one in recordings]
    return [value * 1e3 for value in values if not isinstance(value, Undefined)]


def in_line(count: int, gap: float, service: float, places: int, first: float) -> list[Recording]:
    """Requests that are due every ``gap``, wait for one of some places and hold it for ``service``."""
    free = [0.0] * places
    recordings = []
    for number in range(count):
        due = number * gap
        sent = max(due, min(free))
        free[free.index(min(free))] = sent + service
        recordings.append(answered(number, due, sent, sorted({sent + first, sent + service})))
    return recordings


def test_waiting_for_the_clients_own_places_is_counted_from_the_schedule() -> None:
    """Case B078: 1,900 ms from the schedule and 500 from the dispatch, and a rate that was not reached is refused."""
    given, expected = case("B078")
    gap, places = given["interval_ms"], given["concurrency"]
    recordings = in_line(given["n"], gap, given["service_ms"], places, given["service_ms"])
    delays = milliseconds(recordings, "delay")
    assert np.mean(milliseconds(recordings, "e2el_from_due")) == pytest.approx(expected["e2e_from_schedule_mean_ms"])
    assert np.mean(milliseconds(recordings, "e2el")) == pytest.approx(expected["e2e_from_dispatch_mean_ms"])
    assert np.mean(delays) == pytest.approx(expected["dispatch_delay_mean_ms"])
    assert max(delays) == pytest.approx(expected["dispatch_delay_max_ms"])
    result = result_of(recordings, places, scheduled=True)
    assert result.schedule_delays == pytest.approx([delay / 1e3 for delay in delays])
    assert result.peak_in_flight == places
    problem = load_problem(result, Shape(rate=Rate.constant(1e3 / gap), max_concurrency=places))
    assert problem is not None
    assert problem.startswith("2 requests/s were sent where 10 requests/s were due")
    roomy = in_line(given["n"], gap, given["service_ms"], given["n"], given["service_ms"])
    kept = result_of(roomy, given["n"], scheduled=True)
    assert load_problem(kept, Shape(rate=Rate.constant(1e3 / gap), max_concurrency=given["n"])) is None


def test_users_that_queue_for_a_connection_are_no_users() -> None:
    """Case B079: a hundred in flight of two hundred, first tokens after up to 2,150 ms; the run is refused."""
    given, expected = case("B079")
    recordings = in_line(given["n"], 0.0, given["service_ms"], given["pool_limit"], given["ttft_ms"])
    result = result_of(recordings, given["n"], scheduled=False)
    waits = milliseconds(recordings, "ttft_from_due")
    assert result.peak_in_flight == expected["peak_in_flight"]
    assert result.concurrency_reached is expected["concurrency_reached"]
    assert max(waits) == pytest.approx(expected["ttft_max_ms"])
    assert np.median(waits) == pytest.approx(expected["ttft_median_ms"])
    # From the send nothing of it shows, which is why the peak must be looked at.
    assert set(np.round(milliseconds(recordings, "ttft"), 6)) == {given["ttft_ms"]}
    problem = load_problem(result, Shape(max_concurrency=given["n"]))
    assert problem is not None
    assert problem.startswith("100 requests were in flight at a time where 200 were asked for")
    all_at_once = in_line(given["n"], 0.0, given["service_ms"], given["n"], given["ttft_ms"])
    assert load_problem(result_of(all_at_once, given["n"], scheduled=False), Shape(max_concurrency=given["n"])) is None


def test_two_hundred_due_at_once_for_a_hundred_places_over_a_socket() -> None:
    """Case B079 played eight times as fast: never more than the hundred, and the others wait for a whole answer."""
    given, expected = case("B079")
    first, service = given["ttft_ms"] / 8e3, given["service_ms"] / 8e3
    schedule = [(0.0, Request(f"r{number}", "chat", {"messages": []})) for number in range(given["n"])]
    with Loopback(steady(2, first=first, gap=service - first)) as server:
        result = run_open(Target(server.base_url, "m"), schedule, max_concurrency=given["pool_limit"])
    assert result.peak_in_flight == expected["peak_in_flight"]
    waits = sorted(milliseconds(result.recordings, "ttft_from_due"))
    assert len(waits) == given["n"]
    assert waits[given["pool_limit"]] >= expected["ttft_max_ms"] / 8 - 1
    assert min(milliseconds(result.recordings, "ttft")) >= given["ttft_ms"] / 8 - 1


class StampedSocket:
    """A socket whose reads the kernel stamped when they came."""

    def __init__(self, arrivals: Sequence[float], stamped: bool) -> None:
        self._arrivals: Iterator[float] = iter(arrivals)
        self._stamped = stamped

    def recvmsg(self, _size: int, _ancillary: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
        """The next read, with its stamp."""
        at = round(next(self._arrivals) * 1e6)
        stamp = struct.pack("@qq", *divmod(at, 1_000_000_000))
        notes = [(socket.SOL_SOCKET, 35, stamp)] if self._stamped else []
        return b"x", notes, 0, None


class Moments:
    """An exchange that keeps moments only."""

    def __init__(self) -> None:
        self.kept: list[float] = []
        self.last = -math.inf

    def received(self, at: float, _data: bytes) -> None:
        """A read."""
        self.kept.append(at)
        self.last = at


def read_late(
    arrivals: Sequence[float], fetched: Sequence[float], monkeypatch: pytest.MonkeyPatch, *, stamped: bool
) -> tuple[list[float], float]:
    """Moments that the client keeps of reads it fetches late, and the longest wait, in milliseconds."""
    clock = iter(fetched)
    monkeypatch.setattr(reactor, "monotonic", lambda: next(clock) / 1e3)
    sink = Moments()

    async def read() -> float:
        one = Reactor()
        source = cast(socket.socket, StampedSocket(arrivals, stamped))
        for _ in arrivals:
            one._receive(source, cast(Exchange, sink), 0)
        one.close()
        return one.lag.longest * 1e3

    longest = asyncio.run(read())
    return [at * 1e3 for at in sink.kept], longest


def test_moments_are_those_of_the_arrival_however_late_they_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case B080: 100 ms and gaps of 20, though reads were fetched up to 35 ms late; that lag is kept beside them."""
    given, expected = case("B080")
    moments, lag = read_late(given["arrival_ms"], given["stamp_ms"], monkeypatch, stamped=True)
    assert lag == pytest.approx(expected["client_lag_max_ms"])
    recording = answered(0, 0.0, 0.0, moments)
    assert milliseconds([recording], "ttft") == pytest.approx([expected["ttft_ms"]])
    assert np.diff(moments) == pytest.approx(expected["itl_ms"])
    assert milliseconds([recording], "tpot") == pytest.approx([np.mean(expected["itl_ms"])])


def test_moments_of_the_fetch_are_the_cases_wrong_ones_and_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case B080 without the kernel's stamps: gaps of 20, 54, 5 and 5 ms, and a run that says so by its lag."""
    given, expected = case("B080")
    moments, _ = read_late(given["arrival_ms"], given["stamp_ms"], monkeypatch, stamped=False)
    assert [later - earlier for earlier, later in pairwise(moments)] == pytest.approx(expected["stamped_itl_ms"])
    lag = max(late - came for came, late in zip(given["arrival_ms"], given["stamp_ms"], strict=True))
    assert lag == expected["client_lag_max_ms"]
    health = replace(WELL, loop_lag_p99=lag / 1e3, reads_stamped=0)
    assert health.late is expected["flag_client_lag"]
    assert lag / 1e3 > LAG_LIMIT
    assert health.warnings()[0].startswith("the client's event loop ran 35.0 ms late (p99), so tokens were stamped")
