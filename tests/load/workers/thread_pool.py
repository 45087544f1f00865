"""A crew of threads of this process: everything of a crew but its processes, so that tests of conducting are quick."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from phasegate.load.workers.job import Job
from phasegate.load.workers.messages import Batch, Command, Gone, Report, unpack
from phasegate.load.workers.working import Worker


@dataclass
class ThreadPool:
    """Workers that are threads.

    Attributes:
        told: every command, with its worker.
        dying: a worker dies once it has reported so many batches.
    """

    kind: str = "threads"
    told: list[tuple[int, Command]] = field(default_factory=list)
    dying: dict[int, int] = field(default_factory=dict)
    closed: int = 0
    prepared: list[int] = field(default_factory=list)
    _inbox: queue.Queue[tuple[int, bytes]] = field(default_factory=queue.Queue)
    _workers: dict[int, Worker] = field(default_factory=dict)
    _batches: dict[int, int] = field(default_factory=dict)

    def room(self) -> int:
        """Any number."""
        return 8

    def local(self) -> bool:
        """Yes."""
        return True

    def prepare(self, count: int) -> None:
        """So many workers."""
        self.prepared.append(count)
        for number in range(count):
            self._workers.setdefault(number, Worker(self._post_of(number)))

    def _post_of(self, number: int) -> Callable[[bytes], None]:
        return lambda frame: self._inbox.put((number, frame))

    def host(self, number: int) -> str:
        """Its name."""
        return f"host {number}"

    def offset(self, number: int) -> float:
        """One clock."""
        return 0.0 * number

    def tell(self, number: int, command: Command) -> None:
        """Send a command."""
        self.told.append((number, command))
        worker = self._workers[number]
        if isinstance(command, Job):
            threading.Thread(target=worker.work, args=(command, worker.accept()), daemon=True).start()
        else:
            worker.deliver(command)

    def poll(self, timeout: float) -> list[tuple[int, Report | Batch]]:
        """What was reported; a worker that has died is heard of once more, and never again."""
        try:
            number, frame = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return []
        report = unpack(frame)
        if number not in self.dying:
            return [(number, report)]
        if self._batches.get(number, 0) > self.dying[number]:
            return []
        if isinstance(report, Batch):
            self._batches[number] = self._batches.get(number, 0) + 1
            if self._batches[number] > self.dying[number]:
                return [(number, Gone("struck by the test"))]
        return [(number, report)]

    def kill(self, number: int) -> None:
        """Not needed."""
        raise AssertionError(f"worker {number} had to be killed")

    def close(self) -> None:
        """Note that it was closed."""
        self.closed += 1
