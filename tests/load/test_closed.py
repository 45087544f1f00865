"""The closed loop: concurrency reached, order kept, nothing lost, whatever ends it."""

import asyncio
import dataclasses
import gc
import os
import signal
import statistics
import threading
import time

import psutil
import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.closed import LoadResult, run_closed
from phasegate.load.health import no_garbage_collection
from phasegate.load.link import Dialer, Link
from tests.loopback import Answer, Loopback, Served, steady


def requests(count: int) -> list[Request]:
    return [Request(f"r{number}", "chat", {"messages": [], "user": f"r{number}"}) for number in range(count)]


def ttft(recording: Recording) -> float:
    assert recording.sent is not None
    return recording.reads[0].at - recording.sent


def test_recordings_come_back_in_the_order_of_the_requests() -> None:
    """Although short answers end before long ones that were sent earlier."""

    def script(served: Served) -> Answer:
        return steady(1, first=0.001 if served.body["user"] in ("r5", "r6") else 0.1, gap=0)

    seen: list[int] = []
    with Loopback(script) as server:
        result = run_closed(
            Target(server.base_url, "m"), requests(8), max_concurrency=8, on_done=lambda place, _: seen.append(place)
        )
    assert [recording.request_id for recording in result.recordings] == [f"r{n}" for n in range(8)]
    assert sorted(seen) == list(range(8))
    assert set(seen[:2]) == {5, 6}
    assert not result.partial


def test_two_hundred_users_are_in_flight_at_once() -> None:
    """No pool of a hundred: all are sent together and the last token-wait is as short as the first (case B079)."""
    with Loopback(steady(2, first=0.4, gap=0.01)) as server:
        result = run_closed(Target(server.base_url, "m"), requests(200), max_concurrency=200)
    assert result.peak_in_flight == 200
    assert result.concurrency_reached
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}
    # Queued behind half of the others, the slower half would wait twice as long.
    assert max(map(ttft, result.recordings)) < 1.6 * statistics.median(map(ttft, result.recordings))
    sends = [recording.sent or 0.0 for recording in result.recordings]
    assert max(sends) - min(sends) < 0.4


def test_never_more_in_flight_than_asked_for_and_a_fresh_one_when_one_ends() -> None:
    """The server counts: at most three at a time, and always three until the list runs out."""
    now = peak = 0
    lock = threading.Lock()

    def script(_: Served) -> Answer:
        nonlocal now, peak
        with lock:
            now += 1
            peak = max(peak, now)
        return steady(2, first=0.02, gap=0.005)

    def done(_place: int, _recording: Recording) -> None:
        nonlocal now
        with lock:
            now -= 1

    with Loopback(script) as server:
        result = run_closed(Target(server.base_url, "m"), requests(15), max_concurrency=3, on_done=done)
    assert peak == result.peak_in_flight == 3
    assert result.concurrency_reached


def test_a_concurrency_that_was_not_reached_is_said() -> None:
    """When the server refuses connections nothing is ever in flight."""
    result = run_closed(Target("http://127.0.0.1:9/v1", "m"), requests(4), max_concurrency=4)
    assert {recording.ending for recording in result.recordings} == {Ending.CONNECT_FAILED}
    assert result.peak_in_flight == 0
    assert not result.concurrency_reached


def test_in_a_closed_loop_a_request_is_due_when_it_is_sent() -> None:
    """Unless the request carries a schedule of its own, which is kept."""
    with Loopback(steady(1, first=0, gap=0)) as server:
        scheduled = dataclasses.replace(requests(1)[0], due=1.25)
        result = run_closed(Target(server.base_url, "m"), [scheduled, *requests(3)[1:]], max_concurrency=1)
    assert result.recordings[0].due == 1.25
    assert all(recording.due == recording.sent for recording in result.recordings[1:])


def test_the_window_spans_the_first_send_and_the_last_end() -> None:
    """Set-up is outside."""
    with Loopback(steady(3, first=0.01, gap=0.01)) as server:
        result = run_closed(Target(server.base_url, "m"), requests(6), max_concurrency=2)
    sends = [recording.sent or 0.0 for recording in result.recordings]
    assert result.started <= min(sends)
    assert result.ended == max(recording.ended_at for recording in result.recordings)


def test_a_server_that_dies_gives_every_request_its_ending() -> None:
    """Those in flight are incomplete, later ones find no server; none is missing and nothing is raised."""
    served = 0
    with Loopback(steady(1000, first=0.01, gap=0.01)) as server:

        def script(_: Served) -> Answer:
            nonlocal served
            served += 1
            if served == 6:
                threading.Timer(0.05, server.kill).start()
            return steady(2, first=0.01, gap=0.01) if served <= 4 else steady(1000, first=0.01, gap=0.01)

        server.script = script
        result = run_closed(Target(server.base_url, "m"), requests(10), max_concurrency=2)
    endings = [recording.ending for recording in result.recordings]
    assert endings[:4] == [Ending.EOF] * 4
    assert endings[4:6] == [Ending.INCOMPLETE] * 2
    assert endings[6:] == [Ending.CONNECT_FAILED] * 4
    assert not result.interrupted


def interrupted_run(stop_after: int) -> LoadResult:
    def script(served: Served) -> Answer:
        quick = int(served.body["user"][1:]) < stop_after
        return steady(1, first=0, gap=0) if quick else steady(1000, first=0.01, gap=0.01)

    def done(place: int, _: Recording) -> None:
        if place == stop_after - 1:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with Loopback(script) as server:
        return run_closed(Target(server.base_url, "m"), requests(20), max_concurrency=2, on_done=done)


def test_a_list_too_large_to_build_ahead_is_sent_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit requests are built between answers; each arrives once."""
    monkeypatch.setattr("phasegate.load.driving.BUILT_AHEAD", 100)
    with Loopback(steady(1, first=0, gap=0)) as server:
        result = run_closed(Target(server.base_url, "m"), requests(9), max_concurrency=3)
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}
    assert sorted(served.body["user"] for served in server.log) == [f"r{number}" for number in range(9)]


def test_ctrl_c_returns_what_was_measured_and_marks_it_partial() -> None:
    """Finished requests are whole, those in flight cancelled with what they had, the rest named as unsent."""
    before = signal.getsignal(signal.SIGINT)
    result = interrupted_run(4)
    assert result.interrupted
    assert result.partial
    endings = [recording.ending for recording in result.recordings]
    assert endings == [Ending.EOF] * 4 + [Ending.CANCELLED] * 2
    assert all(recording.reads for recording in result.recordings)
    assert result.unsent == tuple(f"r{n}" for n in range(6, 20))
    assert signal.getsignal(signal.SIGINT) is before
    assert gc.isenabled()


def test_ctrl_c_while_connecting_ends_the_run_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is being opened is given up, and its request is cancelled, not failed."""

    async def never(_self: Dialer) -> Link:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(Dialer, "_open", never)
    result = run_closed(Target("http://127.0.0.1:9/v1", "m"), requests(3), max_concurrency=1)
    assert result.interrupted
    assert [recording.ending for recording in result.recordings] == [Ending.CANCELLED]
    assert len(result.unsent) == 2


def test_stop_lets_those_in_flight_finish() -> None:
    """No new request is begun once stop says so; none is cut off."""
    finished = 0

    def done(_place: int, _recording: Recording) -> None:
        nonlocal finished
        finished += 1

    with Loopback(steady(3, first=0.01, gap=0.005)) as server:
        result = run_closed(
            Target(server.base_url, "m"), requests(20), max_concurrency=2, on_done=done, stop=lambda: finished >= 5
        )
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}
    assert 5 <= len(result.recordings) <= 7
    assert len(result.recordings) + len(result.unsent) == 20
    assert result.partial
    assert not result.interrupted


def test_a_callers_fault_ends_the_run_and_comes_out() -> None:
    """An exception in on_done is raised after everything was closed."""

    def done(_place: int, _recording: Recording) -> None:
        raise RuntimeError("the caller's own")

    with Loopback(steady(2, first=0.01, gap=0.01)) as server:
        with pytest.raises(RuntimeError, match="the caller's own"):
            run_closed(Target(server.base_url, "m"), requests(6), max_concurrency=2, on_done=done)
        assert gc.isenabled()


def test_garbage_is_not_collected_inside_the_window_and_is_again_afterwards() -> None:
    """Also when it was off before, in which case it stays off."""
    inside: list[bool] = []
    with Loopback(steady(1, first=0, gap=0)) as server:
        to = Target(server.base_url, "m")
        result = run_closed(
            to, requests(2), max_concurrency=1, on_done=lambda _place, _recording: inside.append(gc.isenabled())
        )
    assert inside == [False, False]
    assert result.health.gc_pauses == 0
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), no_garbage_collection():
        _ = 1 / 0
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_forced_collection_inside_the_window_is_counted() -> None:
    """The count of collections can be other than zero."""

    def done(_place: int, _recording: Recording) -> None:
        gc.collect()

    with Loopback(steady(1, first=0, gap=0)) as server:
        result = run_closed(
            Target(server.base_url, "m"),
            requests(2),
            max_concurrency=1,
            on_done=done,
        )
    assert result.health.gc_pauses == 2
    assert result.health.gc_pause_max > 0


@pytest.mark.alone
def test_a_busy_event_loop_is_seen_and_does_not_move_the_stamps() -> None:
    """While the client is blocked for 120 ms, another stream's reads keep the moments they came (case B080)."""
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("kernel receive stamps are Linux's")

    def script(served: Served) -> Answer:
        return steady(1, first=0.05, gap=0) if served.body["user"] == "r0" else steady(1, first=0.1, gap=0)

    def done(place: int, _: Recording) -> None:
        if place == 0:
            time.sleep(0.12)

    with Loopback(script) as server:
        result = run_closed(Target(server.base_url, "m"), requests(2), max_concurrency=2, on_done=done)
        left = server.log[[served.body["user"] for served in server.log].index("r1")].left[0][0]
    assert result.health.loop_lag_max > 0.05
    assert result.health.read_wait_max > 0.04
    assert result.client["stamps"] == "kernel receive time"
    assert abs(result.recordings[1].reads[0].at - left) < 0.03


@pytest.mark.alone
def test_an_idle_loop_has_little_lag_and_spends_little() -> None:
    """The same figures are small when nothing blocks; the bounds are wide, other work shares this machine."""
    with Loopback(steady(20, first=0.02, gap=0.01)) as server:
        health = run_closed(Target(server.base_url, "m"), requests(1), max_concurrency=1).health
    assert health.reads_stamped >= 20
    assert health.read_wait_mean < 0.05
    assert 0 < health.cpu_share < 1
    assert health.cpu_seconds > 0


def test_no_socket_is_open_after_a_run() -> None:
    """Fifty connections later there are as many as before."""

    def sockets() -> int:
        return sum(1 for link in psutil.Process().net_connections("tcp") if link.status != psutil.CONN_LISTEN)

    before = sockets()
    with Loopback(steady(2, first=0.01, gap=0.005, keep_alive=True)) as server:
        result = run_closed(Target(server.base_url, "m"), requests(50), max_concurrency=10)
        assert len(result.recordings) == 50
    assert sockets() == before


def test_nothing_to_send_is_an_empty_result() -> None:
    """Not an error, not a hang."""
    result = run_closed(Target("http://127.0.0.1:9/v1", "m"), [], max_concurrency=4)
    assert result.recordings == ()
    assert result.peak_in_flight == 0


def test_it_also_runs_outside_the_main_thread() -> None:
    """Where no signal handler can be set, it measures all the same."""
    results: list[LoadResult] = []
    with Loopback(steady(1, first=0, gap=0)) as server:
        to = Target(server.base_url, "m")
        thread = threading.Thread(target=lambda: results.append(run_closed(to, requests(3), max_concurrency=2)))
        thread.start()
        thread.join()
    assert len(results[0].recordings) == 3


def test_through_httpx2_the_loop_is_the_same() -> None:
    """Order, concurrency and endings hold on the way for proxies."""
    with Loopback(steady(3, first=0.1, gap=0.01)) as server:
        result = run_closed(Target(server.base_url, "m", transport="httpx2"), requests(12), max_concurrency=6)
    assert [recording.request_id for recording in result.recordings] == [f"r{n}" for n in range(12)]
    assert {recording.ending for recording in result.recordings} == {Ending.EOF}
    assert result.concurrency_reached
    assert result.client["transport"] == "httpx2"


@pytest.mark.parametrize("concurrency", [0, -3])
def test_a_concurrency_below_one_is_refused(concurrency: int) -> None:
    """The error names the number."""
    with pytest.raises(ValueError, match=str(concurrency)):
        run_closed(Target("http://127.0.0.1:9/v1", "m"), requests(1), max_concurrency=concurrency)


def test_running_loops_are_told_to_use_the_client() -> None:
    """Inside an event loop the synchronous call is a mistake that asyncio names."""

    async def inside() -> None:
        run_closed(Target("http://127.0.0.1:9/v1", "m"), requests(1), max_concurrency=1)

    with pytest.raises(RuntimeError, match="event loop"):
        asyncio.run(inside())


def test_many_short_runs_share_one_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the block nothing is collected again, and the innermost end gives nothing back too early."""
    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    with no_garbage_collection():
        for _ in range(3):
            with no_garbage_collection():
                assert not gc.isenabled()
            assert not gc.isenabled()
    assert len(collected) == 1
    assert gc.isenabled()
