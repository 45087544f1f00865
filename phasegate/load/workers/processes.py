"""Workers as processes of this machine, started by ``spawn``: nothing of the parent is copied, neither locks nor loops.

Each worker has one pipe. In the worker a thread reads commands from it and a thread writes reports into it, so that
neither a slow conductor nor a large batch can hold up the event loop. The end of the pipe is the end of the worker: a
conductor that dies, by whatever signal, leaves no process behind. Ctrl-C in a terminal reaches the whole group of
processes; workers are started with that signal blocked, and hear of it from the conductor.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import platform
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic

from phasegate.load.workers.control_channel import WorkerControlChannel
from phasegate.load.workers.job import Job
from phasegate.load.workers.messages import Batch, Command, Gone, Hello, Report, pack, unpack
from phasegate.load.workers.worker_pool import WorkersError
from phasegate.load.workers.working import Worker, hello

BORN_WITHIN = 60.0
"""Seconds in which a worker must be up: it imports the client, which takes about a second on an idle core."""

ENDS_WITHIN = 5.0
"""Seconds that a worker has to end by itself."""


class ProcessWorkerPool:
    """Worker processes on this machine; see `worker_pool.WorkerPool`."""

    kind = "worker processes"

    def __init__(self) -> None:
        self._members: dict[int, tuple[SpawnProcess, Connection]] = {}

    def room(self) -> int:
        """One for each core that this process may run on."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def local(self) -> bool:
        """Always."""
        return True

    def prepare(self, count: int) -> None:
        """Have at least so many workers alive and greeted.

        Raises:
            WorkersError: one ended, or did not answer, before it was up.
        """
        for number, (process, _) in tuple(self._members.items()):
            if not process.is_alive():
                self._bury(number)
        new = [number for number in range(count) if number not in self._members]
        with _ctrl_c_waits():
            for number in new:
                self._members[number] = _spawn(number)
        try:
            for number in new:
                self._greet(number)
        except BaseException:
            self.close()
            raise

    def host(self, number: int) -> str:
        """This machine."""
        del number
        return platform.node() or "unknown"

    def offset(self, number: int) -> float:
        """All processes of one machine have the same monotonic clock."""
        del number
        return 0.0

    def pid(self, number: int) -> int | None:
        """The process id of a worker; None for one that is gone."""
        return self._members[number][0].pid if number in self._members else None

    def pids(self) -> list[int]:
        """The process ids of all workers."""
        return [process.pid for process, _ in self._members.values() if process.pid is not None]

    def tell(self, number: int, command: Command) -> None:
        """Send a command; one to a dead worker is lost."""
        if number in self._members:
            with contextlib.suppress(OSError):  # `poll` will tell of its death
                self._members[number][1].send(command)

    def poll(self, timeout: float) -> list[tuple[int, Report | Batch]]:
        """What workers reported; the death of one comes as `Gone`."""
        by_connection = {connection: number for number, (_, connection) in self._members.items()}
        found: list[tuple[int, Report | Batch]] = []
        for ready in wait(list(by_connection), timeout):
            assert isinstance(ready, Connection)
            number = by_connection[ready]
            try:
                found.append((number, unpack(ready.recv_bytes())))
            except (EOFError, OSError):
                found.append((number, Gone(self._bury(number))))
        return found

    def kill(self, number: int) -> None:
        """End a worker at once."""
        if number in self._members:
            self._members[number][0].kill()

    def close(self) -> None:
        """End all workers: by the end of their pipes, and by force where that does not help."""
        for _, connection in self._members.values():
            connection.close()
        deadline = monotonic() + ENDS_WITHIN
        for process, _ in self._members.values():
            process.join(max(deadline - monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
            process.close()
        self._members.clear()

    def _greet(self, number: int) -> None:
        process, connection = self._members[number]
        try:
            if connection.poll(BORN_WITHIN) and isinstance(unpack(connection.recv_bytes()), Hello):
                return
        except (EOFError, OSError):
            process.join(ENDS_WITHIN)
            raise WorkersError(
                f"worker process {number + 1} ended before it was up ({_ending(process)}); its error stands above. A "
                "script that measures with several workers must begin its work under if __name__ == '__main__'"
            ) from None
        raise WorkersError(
            f"worker process {number + 1} was not up within {BORN_WITHIN:g} s; use fewer workers on this machine"
        )

    def _bury(self, number: int) -> str:
        """Let a dead worker go, and say how it died."""
        process, connection = self._members.pop(number)
        connection.close()
        process.join(ENDS_WITHIN)
        if process.is_alive():
            process.kill()
            process.join()
        how = _ending(process)
        process.close()
        return how


def _spawn(number: int) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_live, args=(theirs,), name=f"phasegate-worker-{number + 1}", daemon=True)
    try:
        process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _ending(process: SpawnProcess) -> str:
    code = process.exitcode
    if code is None:
        return "it closed its pipe"
    return f"killed by signal {-code}" if code < 0 else f"exit status {code}"


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Block Ctrl-C while the block runs. What is started in it inherits that and never unblocks it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _live(connection: Connection) -> None:
    """A worker's whole life; runs in the new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    jobs: queue.SimpleQueue[tuple[Job, WorkerControlChannel]] = queue.SimpleQueue()
    worker = Worker(outbox.put)
    threading.Thread(target=_write, args=(connection, outbox), daemon=True).start()
    outbox.put(pack(hello()))

    def listen() -> None:
        while True:
            try:
                command = connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # the conductor is gone or has no more work; nobody would read what is still measured
            if isinstance(command, Job):
                jobs.put((command, worker.accept()))
            else:
                worker.deliver(command)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        worker.work(*jobs.get())


def _write(connection: Connection, outbox: queue.SimpleQueue[bytes]) -> None:
    while True:
        frame = outbox.get()
        try:
            connection.send_bytes(frame)
        except OSError:
            return
