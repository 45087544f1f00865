"""Room for open sockets."""

from __future__ import annotations

import resource

SPARE = 64
"""Descriptors kept for everything that is not a stream: logs, libraries, the event loop, a child's pipes."""


def allow_open_files(connections: int) -> None:
    """Raise this process's soft limit of open files where so many connections need it.

    Raises:
        OSError: the hard limit is lower still.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Connections being closed and opened again overlap for a moment, hence twice.
    needed = 2 * connections + SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(
            f"{connections} connections need {needed} open files, but this process may have {hard}; "
            "raise the hard limit (ulimit -Hn) or lower the concurrency"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
