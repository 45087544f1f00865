"""Ends a child process when the process that started it is gone, however that one died.

A parent killed with SIGKILL cannot tidy up, so the child has to look after itself: it asks for its parent's
number a few times a second and ends when that changes. (The kernel's own parent-death signal fires already when
the *thread* that started the child ends, and exists on Linux only.)
"""

from __future__ import annotations

import os
import threading
import time

CHECK_EVERY = 0.25
"""Seconds between two looks at the parent's number."""


def is_orphan(parent: int) -> bool:
    """Whether this process has lost the parent with that process number."""
    return os.getppid() != parent


def end_with_parent(parent: int) -> None:
    """From now on, end this process at once when its parent with that process number is gone.

    ``parent`` is passed down by the parent itself (``os.getpid()`` there), because it may be gone already.
    """

    def watch() -> None:
        while not is_orphan(parent):
            time.sleep(CHECK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()
