"""Who drives a load: this process, several workers, or as many as this machine's client proves to need.

One process is the rule: its error is the smallest as long as it keeps up. `Auto` measures so and looks at what the
client saw of itself; only where the client was late or used up its core does it take more workers, and says that the
level must be measured again. On a machine with one or two cores it stays at one, since another worker would take the
server's core, or that of whatever else runs there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.load.driving import LoadResult, OnDone
from phasegate.load.workers.choice import OPTION, WorkersAsked
from phasegate.load.workers.coordinator import coordinate
from phasegate.load.workers.job import Job, do
from phasegate.load.workers.plan import divide_closed, divide_open
from phasegate.load.workers.processes import ProcessWorkerPool
from phasegate.load.workers.worker_pool import WorkerPool
from phasegate.measure.own_error import Calibrations, Watcher


class Driver(Protocol):
    """Sends loads."""

    @property
    def setup(self) -> str:
        """Who sends at present, in words; empty for this process. What is known of one set-up's error holds for it."""

    def drive(
        self, job: Job, *, on_done: OnDone | None = None, stop: Callable[[], bool] | None = None
    ) -> LoadResult:  # fmt: skip
        """Send the requests and return when the last has ended, as `run_closed` and `run_open` do.

        Raises:
            ValueError, OSError, RuntimeError: as those.
            WorkersError: workers cannot be had; one line with the remedy.
        """

    def local(self) -> bool:
        """Whether everything that sends runs on this machine."""

    def grow(self, result: LoadResult) -> str | None:
        """Take more workers where the result shows that the client was the limit.

        Says in words what was done, and then the load has to be measured again, with new prompts; None where
        nothing changed.
        """

    def remark(self, result: LoadResult) -> str | None:
        """What makes who sent this load doubtful, beside the client's own warnings; or None."""

    def close(self) -> None:
        """End all workers. Safe to call twice; the next load starts new ones."""


class OneProcess:
    """This process drives."""

    setup = ""

    def drive(
        self, job: Job, *, on_done: OnDone | None = None, stop: Callable[[], bool] | None = None
    ) -> LoadResult:  # fmt: skip
        """As `run_closed` and `run_open`."""
        return do(job, on_done=on_done, stop=stop)

    def local(self) -> bool:
        """Yes."""
        return True

    def grow(self, result: LoadResult) -> str | None:
        """Never."""
        del result
        return None

    def remark(self, result: LoadResult) -> str | None:
        """Nothing."""
        del result
        return None

    def close(self) -> None:
        """Nothing to end."""


class Several:
    """A crew drives, each worker its share; one user or one request is one worker's."""

    def __init__(self, pool: WorkerPool, workers: int | None = None) -> None:
        """``workers`` at most; None takes as many as the crew has room for."""
        self._pool = pool
        self._asked = workers

    @property
    def workers(self) -> int:
        """How many take part in a load that is large enough."""
        return self._pool.room() if self._asked is None else self._asked

    @property
    def setup(self) -> str:
        """Who sends."""
        return f"{self.workers} {self._pool.kind}"

    def drive(
        self, job: Job, *, on_done: OnDone | None = None, stop: Callable[[], bool] | None = None
    ) -> LoadResult:  # fmt: skip
        """As `run_closed` and `run_open`, from several workers at one time."""
        workers = self.workers
        if job.offsets is None:
            shares = divide_closed(len(job.requests), job.users, workers)
        else:
            shares = divide_open(job.offsets, job.max_concurrency, workers)
        return coordinate(self._pool, job, shares, on_done=on_done, stop=stop)

    def local(self) -> bool:
        """Whether the crew is."""
        return self._pool.local()

    def grow(self, result: LoadResult) -> str | None:
        """Never: the number was chosen."""
        del result
        return None

    def remark(self, result: LoadResult) -> str | None:
        """Nothing: the number was chosen."""
        del result
        return None

    def close(self) -> None:
        """End all workers."""
        self._pool.close()


class Auto:
    """One process, until what it measures of itself asks for more."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._most = max(1, cores - 1)
        self._driver: OneProcess | Several = OneProcess()
        self._pool = ProcessWorkerPool()

    @property
    def workers(self) -> int:
        """How many drive at present."""
        return self._driver.workers if isinstance(self._driver, Several) else 1

    @property
    def setup(self) -> str:
        """Who sends at present."""
        return self._driver.setup

    def drive(
        self, job: Job, *, on_done: OnDone | None = None, stop: Callable[[], bool] | None = None
    ) -> LoadResult:  # fmt: skip
        """As `run_closed` and `run_open`, from as many workers as have proved necessary so far."""
        return self._driver.drive(job, on_done=on_done, stop=stop)

    def local(self) -> bool:
        """Yes."""
        return True

    def grow(self, result: LoadResult) -> str | None:
        """Twice as many workers, at most one for each core but one, where the client was the limit."""
        before = self.workers
        if result.partial or not result.health.at_its_limit or before >= self._most:
            return None
        after = min(2 * before, self._most)
        self._driver = Several(self._pool, after)
        return f"the client was at its limit; measuring again with {after} worker processes instead of {before}"

    def remark(self, result: LoadResult) -> str | None:
        """Why there are no more workers, where there should be."""
        if result.health.at_its_limit and self.workers >= self._most:
            cores = _counted(self._cores, "core")
            return (
                f"{OPTION} auto stays at {self.workers} on {cores}, since one is left to everything else; give the "
                "client more cores, or name a number of workers"
            )
        return None

    def close(self) -> None:
        """End all workers."""
        self._driver.close()


def worker_remark(result: LoadResult) -> str | None:
    """How each worker did, in one line; None where there was one process."""
    if not result.workers:
        return None
    lags = " / ".join("-" if one.health is None else f"{one.health.loop_lag_p99 * 1e3:.1f}" for one in result.workers)
    shares = " / ".join("-" if one.health is None else f"{one.health.cpu_share:.0%}" for one in result.workers)
    many, hosts = (
        _counted(len(result.workers), "worker"),
        _counted(len({one.host for one in result.workers}), "machine"),
    )
    return f"sent by {many} on {hosts}: event loops late by {lags} ms (p99), {shares} of a core used"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def calibrate_driver(
    driver: Driver, calibrations: Calibrations, levels: Iterable[int], watcher: Watcher | None, transport: str
) -> None:
    """Measure the own error of who sends at present, as `Calibrations.measure` does.

    The server of known timing is on this machine's loopback; workers elsewhere do not reach it, and stay uncalibrated.
    """

    def closed(
        target: Target, requests: Sequence[Request], *, max_concurrency: int, on_done: OnDone | None = None
    ) -> LoadResult:
        return driver.drive(Job(target, tuple(requests), max_concurrency), on_done=on_done)

    if driver.local():
        calibrations.measure(levels, setup=driver.setup, drive=closed, watcher=watcher, transport=transport)
    else:
        calibrations.failed = "its workers run on other machines, which the server of known timing here does not serve"


def notes_of(driver: Driver, result: LoadResult) -> tuple[str, ...]:
    """What makes a result's client doubtful; empty where nothing does. A diagnosis takes it for that."""
    remark = driver.remark(result)
    return (*result.health.warnings(), *(() if remark is None else (remark,)))


def driver_for(asked: WorkersAsked) -> Driver:
    """The driver that was asked for; workers are started at the first load.

    Raises:
        ValueError: Ray is asked for and not installed.
    """
    if asked.ray is not None:
        from phasegate.load.workers.ray_workers import RayWorkerPool

        return Several(RayWorkerPool(asked.ray))
    if asked.processes is None:
        return Auto(ProcessWorkerPool().room())
    return OneProcess() if asked.processes == 1 else Several(ProcessWorkerPool(), asked.processes)
