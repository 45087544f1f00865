"""Room for open sockets."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from phasegate.engines.base import EngineError

SPARE = 64
"""Descriptors wanted for everything that is not a stream: logs, libraries, the event loop, a child's pipes."""

LEAST = 8
"""Descriptors that it does not go without, beyond those that are open already."""


def allow_open_files(connections: int) -> None:
    """Raise this process's soft limit of open files where so many connections need it.

    Raises:
        EngineError: the hard limit is lower than what they cannot do without; one line.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Connections being closed and opened again overlap for a moment, hence twice.
    wanted = 2 * connections + SPARE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    least = connections + _open_now() + LEAST
    if hard != resource.RLIM_INFINITY and hard < least:
        many = "1 connection needs" if connections == 1 else f"{connections} connections need"
        raise EngineError(
            f"{many} {least} open files, but this process may have {hard}; "
            "raise the hard limit (ulimit -Hn) or lower the concurrency"
        )
    room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if room > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))


def _open_now() -> int:
    """Descriptors that this process has open; what is usual where it cannot be told."""
    try:
        return len(os.listdir(Path("/proc/self/fd")))  # noqa: PTH208
    except OSError:
        return SPARE // 2
