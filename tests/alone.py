"""Tests with the marker ``alone`` have the machine for themselves, though the suite runs in several processes.

A worker of pytest-xdist holds a lock during each of its tests: shared for an ordinary one, exclusive for one with the
marker. Who wants the exclusive lock stands in a door through which everybody has to pass, so that ordinary tests of
other workers cannot go on overtaking it. The kernel takes both locks back from a worker that dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """The right to run one test; waits for it as long as it takes.

    Args:
        folder: an existing folder for the two lock files, the same for all who mind each other.
        alone: whether nobody else may hold a turn meanwhile.
    """
    with _opened(folder / "door") as door, _opened(folder / "room") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            # Not by closing: a process that a test forked and left behind has the file open too.
            fcntl.flock(room, fcntl.LOCK_UN)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        yield number
    finally:
        os.close(number)
