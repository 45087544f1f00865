"""A lock on a folder between processes: one that writes alone, or several that read.

It is the operating system's own lock on the folder itself. It dies with its process, so that none is ever left behind,
and it leaves no file in a folder that people commit.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 60.0
"""How long a lock is waited for. An update holds it for milliseconds, so that only a stopped process, or very many
updates at once, take as long."""

_PAUSE = 0.005
"""Seconds between two tries; those of one process differ a little, so that two do not meet again and again."""

_NO_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""What a file system without such locks answers, network file systems above all."""


class FolderBusyError(ValueError):
    """Another process held the lock for too long. The message is one line."""


@contextlib.contextmanager
def locked(folder: Path, *, alone: bool, seconds: float = SECONDS) -> Iterator[None]:
    """Hold the lock of a folder that exists. Where its file system has no locks, go on without one.

    Args:
        alone: True to write, False to read beside other readers.
        seconds: how long to wait for others.

    Raises:
        FolderBusyError: others held it for all that time.
        OSError: the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _wait(descriptor, folder, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, folder: Path, kind: int, seconds: float) -> None:
    end, tries = time.monotonic() + seconds, 0
    while True:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                raise
        if time.monotonic() >= end:
            raise FolderBusyError(
                f"{folder}: another process has been using it for {seconds:g} s; wait until that has ended, or end it"
            )
        tries += 1
        time.sleep(_PAUSE * (1 + (os.getpid() + tries) % 7 / 7))
