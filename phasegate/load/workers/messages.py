"""What passes between workers and their conductor: plain, frozen, picklable, and only ever in memory.

A `Job` holds the target and with it the API key: it goes through a pipe or through Ray's own channel, never through
a command line, a file or a log. Recordings come back in batches whose contents
stay packed until somebody wants them, so that the conductor costs next to nothing inside the measured window.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field

from phasegate.core.timeline import Recording
from phasegate.load.health import ClientHealth
from phasegate.load.workers.job import Job


@dataclass(frozen=True, slots=True)
class Start:
    """All are ready: the load begins at this moment of the worker's own monotonic clock."""

    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Begin no further request."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Give up what is in flight as cancelled."""


Command = Job | Start | Stop | Abort


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker is up.

    Attributes:
        host: name of its machine.
        boot: what tells one boot of one machine from another; equal means one monotonic clock. Empty where unknown.
        version: of phasegate there.
    """

    host: str
    boot: str
    version: str


@dataclass(frozen=True, slots=True)
class Ready:
    """Requests are built and connections open; the worker waits for `Start`."""


@dataclass(frozen=True, slots=True)
class Done:
    """The worker's share is over, and every recording of it has been sent.

    Attributes:
        health: what the worker saw of itself.
        client: how it measured (`Client.facts`).
        started: when its window began, on its own clock.
        interrupted, server_gone: as in `LoadResult`.
    """

    health: ClientHealth
    client: dict[str, object]
    started: float
    interrupted: bool
    server_gone: bool


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker could not do its share: an error of its own, not of the server.

    Attributes:
        kind: ``"ValueError"`` or ``"OSError"`` for an error that the caller can act on; empty for any other.
        text: its message, free of secrets as all of ours are.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A worker is dead; never sent, but noticed. ``reason`` says how, such as ``"killed by signal 9"``."""

    reason: str


Report = Hello | Ready | Done | Failed | Gone

_BATCH, _WORD = b"B", b"W"


@dataclass(frozen=True, slots=True)
class Batch:
    """Finished recordings, still packed."""

    packed: tuple[bytes, ...] = field(repr=False)

    def recordings(self) -> list[tuple[int, Recording]]:
        """Each recording with its place in the worker's share."""
        return [pickle.loads(one) for one in self.packed]


def pack_recording(place: int, recording: Recording) -> bytes:
    """One recording of a batch."""
    return pickle.dumps((place, recording), pickle.HIGHEST_PROTOCOL)


def pack_batch(packed: Sequence[bytes]) -> bytes:
    """A batch of packed recordings, for the way."""
    return _BATCH + pickle.dumps(tuple(packed), pickle.HIGHEST_PROTOCOL)


def pack(report: Report) -> bytes:
    """A report, for the way."""
    return _WORD + pickle.dumps(report, pickle.HIGHEST_PROTOCOL)


def unpack(frame: bytes) -> Report | Batch:
    """What was packed. Only for bytes of a worker that this process started itself: it unpickles them."""
    found = pickle.loads(frame[1:])
    return Batch(found) if frame[:1] == _BATCH else found
