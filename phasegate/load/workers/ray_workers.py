"""Workers as actors of a Ray cluster: Ray starts them, places them and notices their deaths; nothing here does.

Each worker is one actor that takes one CPU of the cluster; Ray spreads them over its nodes. An actor's calls run in
threads: one call hands over a job and comes back at once, short ones carry commands, and one that waits up to
`WAIT` seconds brings back what has been reported, so that the cluster's machinery has little to do inside the window.

Clocks: a worker on this machine has this machine's monotonic clock. For one elsewhere the difference between its clock
and ours is measured by asking it for the time, over and over, and taking the answer that came back soonest (Cristian,
Probabilistic clock synchronization, 1989): the error is at most half of that round trip. It shifts the common start and
the worker's place in the merged window, never a latency: both ends of every latency are on the worker's own clock.
"""

from __future__ import annotations

import contextlib
import platform
import queue
import threading
from importlib import import_module
from time import monotonic
from typing import Any

from phasegate import __version__
from phasegate.load.workers.control_channel import WorkerControlChannel
from phasegate.load.workers.job import Job
from phasegate.load.workers.messages import Batch, Command, Gone, Hello, Report, unpack
from phasegate.load.workers.worker_pool import WorkersError
from phasegate.load.workers.working import Worker, hello

WAIT = 0.5
"""Seconds that a worker gathers reports before it hands them over; a word such as `Ready` goes at once."""

BORN_WITHIN = 120.0
"""Seconds in which all actors must be up: Ray starts a process for each, and imports the client there."""

ASKED = 20
"""How often a worker elsewhere is asked for the time."""


class RayWorker:
    """The actor. Every method is called in a thread of its own, except that jobs never overlap."""

    def __init__(self) -> None:
        self._outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._worker = Worker(self._outbox.put)

    def hello(self) -> Hello:
        """Who this is."""
        return hello()

    def clock(self) -> float:
        """The time here."""
        return monotonic()

    def begin(self, job: Job) -> None:
        """Take the job on and come back; reports say how it goes."""
        channel: WorkerControlChannel = self._worker.accept()
        threading.Thread(target=self._worker.work, args=(job, channel), daemon=True).start()

    def deliver(self, command: Command) -> None:
        """A command for the job."""
        self._worker.deliver(command)

    def take(self) -> list[bytes]:
        """What was reported since the last time; waits up to `WAIT` seconds for a word, and batches wait with it."""
        frames: list[bytes] = []
        until = monotonic() + WAIT
        while not any(_is_word(frame) for frame in frames) and (left := until - monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                frames.append(self._outbox.get(timeout=left))
        with contextlib.suppress(queue.Empty):
            while True:
                frames.append(self._outbox.get_nowait())
        return frames


def _is_word(frame: bytes) -> bool:
    return frame[:1] != b"B"


class RayWorkerPool:
    """Actors on a Ray cluster; see `worker_pool.WorkerPool`.

    ``address`` as Ray understands it; empty takes the cluster that the environment names (``RAY_ADDRESS``, or one
    that ``ray start`` began on this machine), and starts one on this machine where there is none.

    Raises:
        ImportError: Ray is not installed; `choice.workers_asked` says so before.
    """

    kind = "Ray workers"

    def __init__(self, address: str = "") -> None:
        self._ray: Any = import_module("ray")
        self._address = address
        self._joined = False
        self._members: dict[int, _Member] = {}

    def room(self) -> int:
        """One worker for each CPU of the cluster.

        Raises:
            WorkersError: the cluster cannot be reached.
        """
        self._join()
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _join(self) -> None:
        """Connect to the cluster, where this process is not connected to one already."""
        if self._ray.is_initialized():
            return
        address = self._address
        try:
            self._ray.init(address=address or None, logging_level="ERROR", log_to_driver=False)
            self._joined = True
        except Exception as error:  # Ray raises many kinds
            where = address or "a local cluster"
            raise WorkersError(
                f"Ray cannot be reached at {where} ({type(error).__name__}: {_first_line(error)}); start it with "
                "ray start --head, and see that its version is this one's"
            ) from None

    def local(self) -> bool:
        """Whether the cluster is this machine alone."""
        self._join()
        return {node["NodeManagerHostname"] for node in self._ray.nodes() if node["Alive"]} <= {platform.node()}

    def prepare(self, count: int) -> None:
        """Have at least so many actors alive and greeted.

        Raises:
            WorkersError: the cluster has no room for them, or runs another version of Phasegate.
        """
        self._join()
        new = [number for number in range(count) if not self._is_alive(number)]
        actors = {number: self._new_actor() for number in new}
        greetings = {number: actor.hello.remote() for number, actor in actors.items()}
        for number, greeting in greetings.items():
            try:
                greeted: Hello = self._ray.get(greeting, timeout=BORN_WITHIN)
            except Exception as error:
                raise WorkersError(
                    f"Ray worker {number + 1} of {count} did not come up ({type(error).__name__}: "
                    f"{_first_line(error)}); see ray status for free CPUs, and install phasegate on every node"
                ) from None
            if greeted.version != __version__:
                raise WorkersError(
                    f"{greeted.host} has phasegate {greeted.version} and this machine {__version__}; install the same "
                    "on every node"
                )
            self._members[number] = _Member(actors[number], greeted, self._offset_of(actors[number], greeted))

    def host(self, number: int) -> str:
        """The name of a worker's machine."""
        return self._members[number].greeted.host

    def offset(self, number: int) -> float:
        """A worker's monotonic clock minus this process's."""
        return self._members[number].offset

    def tell(self, number: int, command: Command) -> None:
        """Send a command; one to a dead worker is lost."""
        member = self._members[number]
        if member.gone:
            return
        with contextlib.suppress(self._ray.exceptions.RayError):  # `poll` will tell of its death
            if isinstance(command, Job):
                # Waited for: a command that overtakes its job would be lost.
                self._ray.get(member.actor.begin.remote(command))
            else:
                member.actor.deliver.remote(command)

    def poll(self, timeout: float) -> list[tuple[int, Report | Batch]]:
        """What workers reported; the death of an actor comes as `Gone`."""
        waiting = {}
        for number, member in self._members.items():
            if not member.gone:
                member.taking = member.taking or member.actor.take.remote()
                waiting[member.taking] = number
        if not waiting:
            return []
        found: list[tuple[int, Report | Batch]] = []
        ready, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=timeout)
        for reference in ready:
            number = waiting[reference]
            member = self._members[number]
            member.taking = None
            try:
                found += [(number, unpack(frame)) for frame in self._ray.get(reference)]
            except self._ray.exceptions.RayError as error:
                member.gone = True
                found.append((number, Gone(_death(error))))
        return found

    def kill(self, number: int) -> None:
        """End a worker at once."""
        self._ray.kill(self._members[number].actor)

    def close(self) -> None:
        """End all actors, and leave the cluster where this crew had joined it."""
        for member in self._members.values():
            with contextlib.suppress(Exception):
                self._ray.kill(member.actor)
        self._members.clear()
        if self._joined and self._ray.is_initialized():
            self._ray.shutdown()
            self._joined = False

    def _is_alive(self, number: int) -> bool:
        """Whether an actor still answers; one may have died since the last load."""
        if number not in self._members or self._members[number].gone:
            return False
        try:
            self._ray.get(self._members[number].actor.hello.remote(), timeout=BORN_WITHIN)
        except self._ray.exceptions.RayError:
            return False
        return True

    def _new_actor(self) -> Any:
        made = self._ray.remote(RayWorker).options(
            num_cpus=1, max_restarts=0, max_concurrency=8, scheduling_strategy="SPREAD"
        )
        return made.remote()

    def _offset_of(self, actor: Any, greeted: Hello) -> float:
        if greeted.boot and greeted.boot == hello().boot:
            return 0.0
        best: tuple[float, float] | None = None
        for _ in range(ASKED):
            before = monotonic()
            there = float(self._ray.get(actor.clock.remote()))
            after = monotonic()
            trip = (after - before, there - (before + after) / 2)
            best = trip if best is None else min(best, trip)
        assert best is not None
        return best[1]


class _Member:
    """One actor as the crew knows it."""

    def __init__(self, actor: Any, greeted: Hello, offset: float) -> None:
        self.actor = actor
        self.greeted = greeted
        self.offset = offset
        self.gone = False
        self.taking: Any = None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def _death(error: Exception) -> str:
    """Why an actor died, in short."""
    for line in str(error).splitlines():
        if "exit" in line.lower() or "killed" in line.lower():
            return f"its actor died: {line.strip()}"[:200]
    return f"its actor died: {_first_line(error)}"[:200]
