"""One load over a crew: hand out the shares, start all at one moment, collect, and put the whole together.

Inside the measured window the conductor only waits for bytes. Ctrl-C is the conductor's: it tells the workers, who
record what they give up, and the result comes back as partial. A worker that dies is noticed by its closed pipe (or by
Ray), and the others go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType

from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.open_loop import LEAD
from phasegate.load.workers.job import Job
from phasegate.load.workers.merge import Part, merged
from phasegate.load.workers.messages import (
    Abort,
    Batch,
    Command,
    Done,
    Failed,
    Gone,
    Ready,
    Report,
    Start,
    Stop,
)
from phasegate.load.workers.plan import Share
from phasegate.load.workers.worker_pool import WorkerPool, WorkersError

LOOK = 0.05
"""Seconds after which the conductor looks up from waiting: for Ctrl-C, and to ask ``stop``."""

START_LEAD = 0.1
"""Seconds from the word to start until the start: many times what the word takes to arrive on a busy machine."""

GRACE = 15.0
"""Seconds that workers get to report after Ctrl-C before they are killed."""

_ERRORS: dict[str, type[Exception]] = {"ValueError": ValueError, "OSError": OSError}


@dataclass(slots=True)
class _Worker:
    """What the conductor knows of one worker's share."""

    share: Share
    ready: bool = False
    batches: list[Batch] = field(default_factory=list)
    done: Done | None = None
    lost: str | None = None
    failed: Failed | None = None

    @property
    def over(self) -> bool:
        return self.done is not None or self.lost is not None or self.failed is not None


def coordinate(
    pool: WorkerPool,
    job: Job,
    shares: Sequence[Share],
    *,
    on_done: OnDone | None = None,
    stop: Callable[[], bool] | None = None,
) -> LoadResult:
    """Send the requests of a load by their shares and return when the last worker has ended.

    Ends as `run_closed` and `run_open` do: Ctrl-C raises nothing, ``stop`` is asked every `LOOK` seconds, and a fault
    of ``on_done`` ends the run and is raised. ``on_done`` is told some ticks after a request has ended.

    Raises:
        ValueError, OSError: as `run_closed`; the workers' own errors come back as they were.
        WorkersError: workers cannot be started.
    """
    pool.prepare(len(shares))
    run = _Coordinating(pool, job, shares, on_done, stop)
    try:
        with run.ctrl_c():
            run.hand_out()
            run.collect()
    except BaseException:
        pool.close()  # their state is unknown: the next load starts new ones
        raise
    return run.result()


class _Coordinating:
    """The state of one load."""

    def __init__(
        self,
        pool: WorkerPool,
        job: Job,
        shares: Sequence[Share],
        on_done: OnDone | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self._pool = pool
        self._workers = [_Worker(share) for share in shares]
        self._job = job
        self._on_done = on_done
        self._stop = stop
        self._start: float | None = None
        self._stopped = self._interrupted = False
        self._aborted_at: float | None = None
        self._fault: Exception | None = None

    def hand_out(self) -> None:
        """Give every worker its share."""
        job = self._job
        for number, worker in enumerate(self._workers):
            own = worker.share.places
            requests = tuple(job.requests[place] for place in own)
            offsets = None if job.offsets is None else tuple(job.offsets[place] for place in own)
            self._pool.tell(number, Job(job.target, requests, worker.share.max_concurrency, offsets))

    def collect(self) -> None:
        """Wait until every worker is over."""
        while not all(worker.over for worker in self._workers):
            for number, report in self._pool.poll(LOOK):
                if number < len(self._workers) and not self._workers[number].over:
                    self._enter(self._workers[number], report)
            self._start_when_ready()
            self._look_up()

    def result(self) -> LoadResult:
        """The whole; raises what went wrong on our own side."""
        if self._fault is not None:
            raise self._fault
        for worker in self._workers:
            if worker.failed is not None:
                raise _ERRORS.get(worker.failed.kind, RuntimeError)(worker.failed.text)
        if self._workers and not any(worker.ready for worker in self._workers):
            raise WorkersError(f"no worker lived until the load could begin ({self._workers[0].lost}); measure again")
        return merged(
            [self._part(number, worker) for number, worker in enumerate(self._workers)],
            self._job,
            started=self._start if self._start is not None else monotonic(),
            ended=monotonic(),
            interrupted=self._interrupted,
            kind=self._pool.kind,
        )

    def _part(self, number: int, worker: _Worker) -> Part:
        recordings = [pair for batch in worker.batches for pair in batch.recordings()]
        return Part(
            share=worker.share,
            host=self._pool.host(number),
            offset=self._pool.offset(number),
            recordings=tuple(recordings),
            done=worker.done,
            lost=worker.lost,
        )

    def _enter(self, worker: _Worker, report: Report | Batch) -> None:
        if isinstance(report, Batch):
            worker.batches.append(report)
            self._pass_on(worker, report)
        elif isinstance(report, Ready):
            worker.ready = True
        elif isinstance(report, Done):
            worker.done = report
        elif isinstance(report, Gone):
            worker.lost = report.reason
        elif isinstance(report, Failed):
            worker.failed = report
            self._abort()

    def _pass_on(self, worker: _Worker, batch: Batch) -> None:
        """Tell the caller who wants recordings now; else they stay packed until the window is over."""
        if self._on_done is None or self._fault is not None:
            return
        try:
            for place, recording in batch.recordings():
                self._on_done(worker.share.places[place], recording)
        except Exception as fault:  # the caller's own: end the run cleanly, then raise it
            self._fault = fault
            self._abort()

    def _start_when_ready(self) -> None:
        if self._start is not None or not all(worker.ready or worker.over for worker in self._workers):
            return
        # A schedule's first request is due at the start, and its connection is opened before.
        self._start = monotonic() + START_LEAD + (0.0 if self._job.offsets is None else LEAD)
        for number in range(len(self._workers)):
            self._pool.tell(number, Start(self._start + self._pool.offset(number)))

    def _look_up(self) -> None:
        if self._interrupted:
            self._abort()
        if not self._stopped and self._stop is not None and self._stop():
            self._stopped = True
            self._tell_all(Stop())
        if self._aborted_at is not None and monotonic() - self._aborted_at > GRACE:
            for number, worker in enumerate(self._workers):
                if not worker.over:
                    self._pool.kill(number)

    def _abort(self) -> None:
        if self._aborted_at is None:
            self._aborted_at = monotonic()
            self._tell_all(Abort())

    def _tell_all(self, command: Command) -> None:
        for number, worker in enumerate(self._workers):
            if not worker.over:
                self._pool.tell(number, command)

    @contextmanager
    def ctrl_c(self) -> Iterator[None]:
        """Ctrl-C ends the load instead of the process; a second one is Python's. Only the main thread is told."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            self._interrupted = True
            signal.signal(signal.SIGINT, signal.default_int_handler)

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
