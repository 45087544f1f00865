"""Conducting workers: one start, one end, one result; each worker is a thread here, and drives as a process would."""

import threading
from collections import Counter
from collections.abc import Callable
from time import monotonic

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.load_check import load_problem
from phasegate.load.shapes import Shape
from phasegate.load.workers.coordinator import coordinate
from phasegate.load.workers.driver import Several
from phasegate.load.workers.job import Job
from phasegate.load.workers.messages import Start, Stop
from phasegate.wire.openai_stream import decode
from tests.load.workers.thread_pool import ThreadPool
from tests.loopback import Answer, Loopback, Served, steady


def requests(count: int) -> tuple[Request, ...]:
    return tuple(Request(f"r{number}", "chat", {"messages": [], "user": f"r{number}"}) for number in range(count))


def drive(
    pool: ThreadPool, job: Job, *, on_done: OnDone | None = None, stop: Callable[[], bool] | None = None
) -> LoadResult:
    return Several(pool, 3).drive(job, on_done=on_done, stop=stop)


def test_every_request_is_sent_once_and_comes_back_in_its_order() -> None:
    with Loopback(steady(3, first=0.02, gap=0.005)) as server:
        result = drive(ThreadPool(), Job(Target(server.base_url, "m"), requests(23), 7))
        arrived = Counter(served.body["user"] for served in server.log)
    assert [one.request_id for one in result.recordings] == [f"r{n}" for n in range(23)]
    assert {decode(one).status for one in result.recordings} == {"ok"}
    assert arrived == Counter(f"r{n}" for n in range(23))
    assert not result.partial
    assert (len(result.workers), result.max_concurrency, result.peak_in_flight) == (3, 7, 7)
    assert sum(one.requests for one in result.workers) == 23


def test_never_more_in_flight_than_asked_for_over_all_workers() -> None:
    """The server counts, from a request's head until its answer is over."""
    now = peak = 0
    lock = threading.Lock()

    def script(_: Served) -> Answer:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        return steady(2, first=0.05, gap=0.005)

    def ended(_place: int, _recording: Recording) -> None:
        nonlocal now
        with lock:
            now -= 1

    with Loopback(script) as server:
        result = drive(ThreadPool(), Job(Target(server.base_url, "m"), requests(15), 5), on_done=ended)
    assert result.peak_in_flight == 5
    assert peak >= 5  # the count goes down only when the conductor hears of an end
    assert result.concurrency_reached


def test_all_workers_start_at_one_moment() -> None:
    pool = ThreadPool()
    with Loopback(steady(1, first=0.01, gap=0)) as server:
        result = drive(pool, Job(Target(server.base_url, "m"), requests(6), 3))
    starts = {command.at for _, command in pool.told if isinstance(command, Start)}
    assert starts == {result.started}
    assert min(one.sent or 0.0 for one in result.recordings) >= result.started


def test_a_schedule_keeps_every_due_moment() -> None:
    """To the last bit: due is the common start plus the offset, in whichever worker."""
    offsets = (0.3, 0.0, 0.1, 0.1, 0.2, 0.05)
    with Loopback(steady(1, first=0.01, gap=0)) as server:
        result = drive(ThreadPool(), Job(Target(server.base_url, "m"), requests(6), None, offsets))
    assert [one.due for one in result.recordings] == [result.started + offset for offset in offsets]
    assert all(one.sent is not None and one.sent >= one.due for one in result.recordings)
    assert result.scheduled
    assert load_problem(result, Shape(), delay_limit=1.0) is None


def test_a_dead_worker_loses_what_it_had_not_reported_and_the_others_go_on() -> None:
    """Worker 2 dies with its first batch, on its way to 4 requests of 12."""
    with Loopback(steady(2, first=0.02, gap=0.01)) as server:
        result = drive(ThreadPool(dying={1: 0}), Job(Target(server.base_url, "m"), requests(12), 3))
    endings = Counter(one.ending for one in result.recordings)
    assert endings == {Ending.EOF: 8, Ending.WORKER_LOST: 4}
    assert [one.request_id for one in result.recordings if one.ending is Ending.WORKER_LOST] == [
        "r1",
        "r4",
        "r7",
        "r10",
    ]
    assert [one.lost for one in result.workers] == [None, "struck by the test", None]
    assert "worker 2" in (load_problem(result, Shape(max_concurrency=3)) or "")


def test_the_caller_is_told_the_place_of_every_request() -> None:
    seen: list[tuple[int, str]] = []
    with Loopback(steady(1, first=0.01, gap=0)) as server:
        drive(
            ThreadPool(),
            Job(Target(server.base_url, "m"), requests(9), 3),
            on_done=lambda place, recording: seen.append((place, recording.request_id)),
        )
    assert sorted(seen) == [(n, f"r{n}") for n in range(9)]


def test_the_callers_fault_ends_the_run_and_is_raised() -> None:
    def burst(_place: int, _recording: Recording) -> None:
        raise LookupError("the caller's own")

    began = monotonic()
    with Loopback(steady(2, first=0.01, gap=0.01)) as server:
        with pytest.raises(LookupError, match="the caller's own"):
            drive(ThreadPool(), Job(Target(server.base_url, "m"), requests(400), 3), on_done=burst)
        assert len(server.log) < 400
    assert monotonic() - began < 60


def test_asked_to_stop_workers_begin_no_more_and_finish_what_runs() -> None:
    pool = ThreadPool()
    seen: list[int] = []
    with Loopback(steady(2, first=0.02, gap=0.01)) as server:
        result = drive(
            pool,
            Job(Target(server.base_url, "m"), requests(400), 3),
            on_done=lambda place, _: seen.append(place),
            stop=lambda: len(seen) > 5,
        )
    assert {one.ending for one in result.recordings} == {Ending.EOF}
    assert result.partial
    assert not result.interrupted
    assert len(result.recordings) + len(result.unsent) == 400
    assert sum(isinstance(command, Stop) for _, command in pool.told) == 3


def test_a_workers_own_error_is_raised_as_it_was() -> None:
    """A header with a line break can be built nowhere."""
    target = Target("http://127.0.0.1:9/v1", "m", headers={"x-note": "two\r\nlines"})
    with pytest.raises(ValueError, match="x-note"):
        drive(ThreadPool(), Job(target, requests(4), 2))


def test_a_server_that_nobody_reaches_gives_every_request_its_ending() -> None:
    result = drive(ThreadPool(), Job(Target("http://127.0.0.1:9/v1", "m"), requests(6), 3))
    assert {one.ending for one in result.recordings} == {Ending.CONNECT_FAILED}
    assert result.peak_in_flight == 0


def test_no_request_is_no_work() -> None:
    pool = ThreadPool()
    result = coordinate(pool, Job(Target("http://127.0.0.1:9/v1", "m"), (), 3), ())
    assert result.recordings == ()
    assert pool.told == []


def test_one_user_takes_one_worker() -> None:
    pool = ThreadPool()
    with Loopback(steady(1, first=0, gap=0)) as server:
        drive(pool, Job(Target(server.base_url, "m"), requests(3), 1))
    assert pool.prepared == [1]
