"""From several workers' shares to one `LoadResult`: recordings put together, whole and in the order of the requests.

Nothing is averaged. Percentiles, rates and attainment are taken over the merged recordings afterwards, so they are
those that one process would have got from the same recordings. A request that a dead worker had not reported becomes a
recording of its own, with the ending `Ending.WORKER_LOST`: it counts as sent and as failed wherever requests count.
Moments of a worker on another machine are moved onto this one's clock, all of one worker by the same constant, so
that latencies stay what they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phasegate.core.request import Request
from phasegate.core.timeline import Ending, Read, Recording
from phasegate.load.driving import LoadResult
from phasegate.load.health import ClientHealth, WorkerHealth
from phasegate.load.workers.job import Job
from phasegate.load.workers.messages import Done
from phasegate.load.workers.plan import Share


@dataclass(frozen=True, slots=True)
class Part:
    """What came of one worker's share.

    Attributes:
        share: what it was to do.
        host: its machine.
        offset: its monotonic clock minus this process's, in seconds.
        recordings: those that it reported, each with its place in the share, in any order.
        done: its last word, or None.
        lost: why there is none, or None.
    """

    share: Share
    host: str
    offset: float
    recordings: tuple[tuple[int, Recording], ...]
    done: Done | None
    lost: str | None


def merged(
    parts: Sequence[Part],
    job: Job,
    *,
    started: float,
    ended: float,
    interrupted: bool,
    kind: str,
) -> LoadResult:
    """The load as a whole.

    Args:
        parts: one for each worker.
        job: the whole load.
        started, ended: the common start, and the moment at which the last worker was over, on this machine's clock.
        interrupted: whether Ctrl-C ended the run.
        kind: what the workers are, in the plural.
    """
    by_place: dict[int, Recording] = {}
    for part in parts:
        own = part.share.places
        by_place.update({own[place]: shifted(recording, -part.offset) for place, recording in part.recordings})
    for number, part in enumerate(parts, 1):
        if part.lost is not None:
            for place in set(part.share.places) - by_place.keys():
                due = started if job.offsets is None else started + job.offsets[place]
                by_place[place] = _lost(job.requests[place], number, part.lost, due, ended)
    recordings = tuple(by_place[place] for place in sorted(by_place))
    dones = [part.done for part in parts if part.done is not None]
    return LoadResult(
        recordings=recordings,
        health=worst([done.health for done in dones]),
        max_concurrency=job.max_concurrency,
        peak_in_flight=peak_in_flight(recordings),
        started=started,
        ended=max((recording.ended_at for recording in recordings), default=started),
        unsent=tuple(request.request_id for place, request in enumerate(job.requests) if place not in by_place),
        interrupted=interrupted or any(done.interrupted for done in dones),
        client={**(dones[0].client if dones else {}), kind: len(parts)},
        scheduled=job.offsets is not None,
        server_gone=any(done.server_gone for done in dones),
        workers=tuple(_view(number, part) for number, part in enumerate(parts, 1)),
    )


def worst(healths: Sequence[ClientHealth]) -> ClientHealth:
    """The health of a client of several processes: the worst of what delays, the sum of what is counted.

    ``cpu_share`` is that of the busiest worker, since each has a core for itself.
    """
    reads = sum(one.reads_stamped for one in healths)
    waited = sum(one.read_wait_mean * one.reads_stamped for one in healths)
    return ClientHealth(
        loop_lag_p99=max((one.loop_lag_p99 for one in healths), default=0.0),
        loop_lag_max=max((one.loop_lag_max for one in healths), default=0.0),
        cpu_seconds=sum(one.cpu_seconds for one in healths),
        cpu_share=max((one.cpu_share for one in healths), default=0.0),
        gc_pauses=sum(one.gc_pauses for one in healths),
        gc_pause_max=max((one.gc_pause_max for one in healths), default=0.0),
        reads_stamped=reads,
        read_wait_mean=waited / reads if reads else 0.0,
        read_wait_max=max((one.read_wait_max for one in healths), default=0.0),
    )


def peak_in_flight(recordings: Sequence[Recording]) -> int:
    """Requests between their send and their end at most at one moment, over all workers."""
    turns = sorted(
        turn for one in recordings if one.sent is not None for turn in ((one.sent, 1), (one.ended_at, -1))
    )  # fmt: skip
    now = most = 0
    for _, change in turns:
        now += change
        most = max(most, now)
    return most


def shifted(recording: Recording, by: float) -> Recording:
    """The recording with every moment moved by the same number of seconds; itself for exactly 0."""
    if by == 0.0:
        return recording
    return replace(
        recording,
        due=recording.due + by,
        sent=None if recording.sent is None else recording.sent + by,
        headers_at=None if recording.headers_at is None else recording.headers_at + by,
        reads=tuple(Read(read.at + by, read.data) for read in recording.reads),
        ended_at=recording.ended_at + by,
    )


def _lost(request: Request, number: int, reason: str, due: float, ended: float) -> Recording:
    """A request of which nothing is known, because its worker died before it told."""
    return Recording(
        request_id=request.request_id,
        due=due,
        sent=None,
        connect_time=None,
        http_status=None,
        headers=(),
        headers_at=None,
        reads=(),
        ending=Ending.WORKER_LOST,
        ended_at=max(due, ended),
        detail=f"lost with worker {number} ({reason})",
        expected=request.expected,
    )


def _view(number: int, part: Part) -> WorkerHealth:
    return WorkerHealth(
        number=number,
        host=part.host,
        requests=len(part.share.places),
        unreported=len(part.share.places) - len(part.recordings) if part.lost is not None else 0,
        lost=part.lost,
        health=None if part.done is None else part.done.health,
    )
