"""What a worker does, whatever it is: one job after another, with the drivers that one process uses."""

from __future__ import annotations

import platform
import threading
from pathlib import Path

from phasegate import __version__
from phasegate.load.driving import LoadResult
from phasegate.load.workers.control_channel import Post, WorkerControlChannel
from phasegate.load.workers.job import Job, do
from phasegate.load.workers.messages import Command, Done, Failed, Hello, pack

BOOT = Path("/proc/sys/kernel/random/boot_id")


def hello() -> Hello:
    """Who this worker is."""
    try:
        boot = BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return Hello(platform.node() or "unknown", boot, __version__)


class Worker:
    """Does jobs one at a time; commands for the running job may come from any other thread.

    ``post`` takes packed reports; it is called from the thread that works, and must not block.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._channel: WorkerControlChannel | None = None

    def accept(self) -> WorkerControlChannel:
        """The cue of the next job: commands from now on are meant for it. `work` does the job."""
        with self._lock:
            self._channel = WorkerControlChannel(self._post)
            return self._channel

    def deliver(self, command: Command) -> None:
        """A command for the job that was accepted last; one without a job is out of date."""
        with self._lock:
            channel = self._channel
        if channel is not None:
            channel.deliver(command)

    def work(self, job: Job, channel: WorkerControlChannel) -> None:
        """Do the job and report it; an error of our own is reported and not raised."""
        try:
            result = do(job, stop=channel.stopped, channel=channel)
            channel.send_rest()
        except Exception as error:  # whatever it is, the conductor is told, and decides
            kind = next((known.__name__ for known in (OSError, ValueError) if isinstance(error, known)), "")
            self._post(pack(Failed(kind, str(error) if kind else f"{type(error).__name__}: {error}")))
            return
        self._post(pack(_done(result)))


def _done(result: LoadResult) -> Done:
    return Done(result.health, result.client, result.started, result.interrupted, result.server_gone)
