"""Merging is exact: the same recordings give the same numbers, from however many workers they came."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Read, Recording
from phasegate.load.driving import LoadResult
from phasegate.load.health import ClientHealth
from phasegate.load.load_check import load_problem
from phasegate.load.shapes import Shape
from phasegate.load.workers.job import Job
from phasegate.load.workers.merge import Part, merged, peak_in_flight, shifted, worst
from phasegate.load.workers.messages import Done
from phasegate.load.workers.plan import Share, divide_closed, divide_open
from phasegate.stats.level_run import LevelRun, Round
from phasegate.wire.openai_stream import decode
from tests.loopback import event, usage

WELL = ClientHealth(0.001, 0.002, 0.1, 0.1, 0, 0.0, 100, 0.0001, 0.001)
FACTS: dict[str, object] = {"transport": "socket"}


def answered(number: int, sent: float, ttft: float, gap: float) -> Recording:
    """A stream of three tokens."""
    moments = [sent + ttft + place * gap for place in range(3)]
    reads = [Read(at, event(f"t{place}")) for place, at in enumerate(moments)]
    return Recording(
        request_id=f"r{number}",
        due=sent,
        sent=sent,
        connect_time=0.001,
        http_status=200,
        headers=(("content-type", "text/event-stream"),),
        headers_at=moments[0],
        reads=(*reads, Read(moments[-1], usage(8, 3))),
        ending=Ending.EOF,
        ended_at=moments[-1],
    )


def job_of(recordings: list[Recording], concurrency: int | None, offsets: tuple[float, ...] | None = None) -> Job:
    requests = tuple(Request(one.request_id, "chat", {"messages": []}) for one in recordings)
    return Job(Target("http://127.0.0.1:9/v1", "m"), requests, concurrency, offsets)


def part_of(share: Share, recordings: list[Recording], *, offset: float = 0.0, keep: int | None = None) -> Part:
    """What a worker would report of these; with ``keep`` it died after so many."""
    own = [(number, shifted(recordings[place], offset)) for number, place in enumerate(share.places)]
    if keep is None:
        return Part(share, "here", offset, tuple(reversed(own)), Done(WELL, FACTS, 0.0, False, False), None)
    return Part(share, "here", offset, tuple(own[:keep]), None, "killed by signal 9")


def merge(parts: list[Part], job: Job, *, interrupted: bool = False) -> LoadResult:
    return merged(parts, job, started=0.0, ended=99.0, interrupted=interrupted, kind="worker processes")


def level(result: LoadResult) -> LevelRun:
    return LevelRun(1.0, (Round(tuple(decode(one) for one in result.recordings)),))


RECORDINGS = st.lists(
    st.tuples(st.floats(0, 10), st.floats(0.001, 2), st.floats(0.0001, 0.2)), min_size=1, max_size=24
).map(lambda rows: [answered(number, *row) for number, row in enumerate(rows)])


@settings(max_examples=40, deadline=None)
@given(recordings=RECORDINGS, workers=st.integers(1, 6), concurrency=st.integers(1, 9))
def test_percentiles_and_rates_are_those_of_one_process_on_the_same_recordings(
    recordings: list[Recording], workers: int, concurrency: int
) -> None:
    """Not close: equal, to the last bit."""
    job = job_of(recordings, concurrency)
    one = merge([part_of(share, recordings) for share in divide_closed(len(recordings), concurrency, 1)], job)
    several = merge([part_of(share, recordings) for share in divide_closed(len(recordings), concurrency, workers)], job)
    assert one.recordings == several.recordings == tuple(recordings)
    for metric in ("ttft", "tpot", "e2el"):
        for percent in (50, 95, 99):
            assert level(one).percentile(metric, percent) == level(several).percentile(metric, percent)
    assert level(one).token_rate == level(several).token_rate
    assert one.achieved_rate == several.achieved_rate
    assert one.mean_in_flight == several.mean_in_flight
    assert one.peak_in_flight == several.peak_in_flight


def test_the_mean_of_the_workers_percentiles_would_be_another_number() -> None:
    """The fault that merging must not have, made on purpose: one slow worker of two."""
    recordings = [answered(n, 0.0, 0.1 if n % 2 else 1.0, 0.01) for n in range(20)]
    job = job_of(recordings, 2)
    whole = level(merge([part_of(share, recordings) for share in divide_closed(20, 2, 2)], job))
    halves = [
        LevelRun(1.0, (Round(tuple(decode(recordings[place]) for place in share.places)),))
        for share in divide_closed(20, 2, 2)
    ]
    averaged = np.mean([interval.value for half in halves if (interval := half.percentile("ttft", 95))])
    exact = whole.percentile("ttft", 95)
    assert exact is not None
    assert exact.value == pytest.approx(1.0)
    assert averaged == pytest.approx(0.55)


def test_what_a_dead_worker_had_not_reported_comes_back_as_lost_and_counts_as_failed() -> None:
    """Worker 2 of 2 had five requests and reported two."""
    recordings = [answered(n, float(n), 0.1, 0.01) for n in range(10)]
    shares = divide_closed(10, 2, 2)
    result = merge([part_of(shares[0], recordings), part_of(shares[1], recordings, keep=2)], job_of(recordings, 2))
    assert [one.request_id for one in result.recordings] == [f"r{n}" for n in range(10)]
    lost = [one for one in result.recordings if one.ending is Ending.WORKER_LOST]
    assert [one.request_id for one in lost] == ["r5", "r7", "r9"]
    assert {one.detail for one in lost} == {"lost with worker 2 (killed by signal 9)"}
    run = level(result)
    assert run.failures() == {"worker_lost": 3}
    assert run.sent == 10
    p95 = run.percentile("ttft", 95)
    assert p95 is not None
    assert p95.value == math.inf
    assert result.unsent == ()


def test_a_load_that_lost_a_worker_is_no_verdict_on_the_server() -> None:
    recordings = [answered(n, float(n), 0.1, 0.01) for n in range(10)]
    shares = divide_closed(10, 2, 2)
    whole = merge([part_of(share, recordings) for share in shares], job_of(recordings, 2))
    result = merge([part_of(shares[0], recordings), part_of(shares[1], recordings, keep=2)], job_of(recordings, 2))
    said = load_problem(result, Shape(max_concurrency=2))
    assert said is not None
    assert "worker 2 (killed by signal 9) died with 3 of 10 requests unreported" in said
    assert "died" not in (load_problem(whole, Shape(max_concurrency=2)) or "")


def test_lost_requests_of_a_schedule_keep_the_moment_at_which_they_were_due() -> None:
    recordings = [answered(n, 100.0 + n, 0.1, 0.01) for n in range(4)]
    job = job_of(recordings, None, (0.0, 1.0, 2.0, 3.0))
    shares = divide_open(job.offsets or (), None, 2)
    parts = [part_of(shares[0], recordings), part_of(shares[1], recordings, keep=0)]
    result = merged(parts, job, started=100.0, ended=104.0, interrupted=False, kind="workers")
    assert [one.due for one in result.recordings] == [100.0, 101.0, 102.0, 103.0]
    assert result.scheduled
    assert result.requested_rate == pytest.approx(1.0)


def test_requests_that_an_interrupted_run_never_began_are_unsent() -> None:
    recordings = [answered(n, float(n), 0.1, 0.01) for n in range(4)]
    (share,) = divide_closed(4, 1, 1)
    part = dataclasses.replace(part_of(share, recordings), recordings=((0, recordings[0]),))
    result = merge([part], job_of(recordings, 1), interrupted=True)
    assert result.unsent == ("r1", "r2", "r3")
    assert result.partial


def test_another_machines_moments_come_onto_our_clock_and_its_latencies_stay() -> None:
    """Its clock stands a week further on."""
    recordings = [answered(n, 10.0 + n, 0.125, 0.25) for n in range(6)]
    shares = divide_closed(6, 2, 2)
    job = job_of(recordings, 2)
    near = merge([part_of(share, recordings) for share in shares], job)
    far = merge([part_of(shares[0], recordings), part_of(shares[1], recordings, offset=604800.0)], job)
    assert [one.sent for one in far.recordings] == [one.sent for one in near.recordings]
    assert [one.due for one in far.recordings] == [one.due for one in near.recordings]
    for metric in ("ttft", "tpot", "e2el"):
        assert level(far).samples(metric) == pytest.approx(level(near).samples(metric), abs=1e-9)


def test_a_recording_of_this_machine_is_not_touched() -> None:
    recording = answered(0, 1.0, 0.1, 0.01)
    assert shifted(recording, 0.0) is recording


def test_requests_in_flight_are_counted_over_all_workers() -> None:
    """Two that touch are not two at a time."""
    spans = [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0), (3.0, 4.0)]
    recordings = [answered(n, begin, end - begin - 0.02, 0.01) for n, (begin, end) in enumerate(spans)]
    exact = [dataclasses.replace(one, ended_at=end) for one, (_, end) in zip(recordings, spans, strict=True)]
    assert peak_in_flight(exact) == 2
    assert peak_in_flight([]) == 0


def test_the_health_of_several_is_the_worst_where_it_delays_and_the_sum_where_it_counts() -> None:
    other = ClientHealth(0.02, 0.001, 0.3, 0.95, 2, 0.5, 300, 0.0003, 0.0002)
    both = dataclasses.asdict(worst([WELL, other]))
    assert both == pytest.approx(
        {
            "loop_lag_p99": 0.02,
            "loop_lag_max": 0.002,
            "cpu_seconds": 0.4,
            "cpu_share": 0.95,
            "gc_pauses": 2,
            "gc_pause_max": 0.5,
            "reads_stamped": 400,
            "read_wait_mean": 0.00025,
            "read_wait_max": 0.001,
        }
    )
    assert worst([]).cpu_seconds == 0.0


def test_every_worker_keeps_its_own_line() -> None:
    recordings = [answered(n, float(n), 0.1, 0.01) for n in range(10)]
    shares = divide_closed(10, 2, 2)
    result = merge([part_of(shares[0], recordings), part_of(shares[1], recordings, keep=1)], job_of(recordings, 2))
    first, second = result.workers
    assert (first.number, first.requests, first.unreported, first.lost) == (1, 5, 0, None)
    assert first.health == WELL
    assert (second.number, second.unreported, second.health) == (2, 4, None)
