"""What a conductor needs of workers, wherever they are."""

from __future__ import annotations

from typing import Protocol

from phasegate.load.workers.messages import Batch, Command, Report


class WorkersError(ValueError):
    """Workers cannot be had or used; one line with the remedy."""


class WorkerPool(Protocol):
    """Workers by number, from 0. They stay between loads; one that died is replaced before the next load."""

    kind: str
    """What they are, in the plural, for the report: ``"worker processes"``."""

    def room(self) -> int:
        """How many workers find room where they are to run.

        Raises:
            WorkersError: that cannot be found out, since the cluster is not reached.
        """

    def local(self) -> bool:
        """Whether all workers run on this machine, and so reach a server on its loopback.

        Raises:
            WorkersError: as `room`.
        """

    def prepare(self, count: int) -> None:
        """Have at least so many workers alive and greeted.

        Raises:
            WorkersError: they cannot be started.
        """

    def host(self, number: int) -> str:
        """The name of a worker's machine."""

    def offset(self, number: int) -> float:
        """A worker's monotonic clock minus this process's, in seconds; exactly 0.0 on this machine."""

    def tell(self, number: int, command: Command) -> None:
        """Send a command; one to a dead worker is lost."""

    def poll(self, timeout: float) -> list[tuple[int, Report | Batch]]:
        """What workers reported, at most ``timeout`` seconds later; deaths come as `Gone`, once each."""

    def kill(self, number: int) -> None:
        """End a worker that does not answer any more; `poll` tells of its death."""

    def close(self) -> None:
        """End all workers. Safe to call twice."""
