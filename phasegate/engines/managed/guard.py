"""Stands between the suite and an engine, so that the engine ends when the suite does, however that one ended.

``python -m phasegate.engines.managed.guard ORDER`` where ORDER is a JSON object: ``command``, ``environment``
(variable -> value, or null to remove it), ``cores`` (may be empty) and ``parent``. It starts the command, stops it and
everything it started on SIGTERM or when its own parent is gone, and ends with its exit status.

An engine cannot look after itself as the embedded one does: it is another program, and its workers are processes of
their own. They are collected while they are still related to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

import psutil

from phasegate.engines.orphan import is_orphan

CHECK_EVERY = 0.1

GRACE = 8.0
"""Seconds between SIGTERM and SIGKILL. vLLM takes about 2 to end its workers."""


def main() -> int:
    """Run the command of the order; see the module."""
    order = json.loads(sys.argv[1])
    # Ctrl-C in the terminal belongs to the suite, which stops the engine when it is done with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    if order["cores"] and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, order["cores"])
    child = subprocess.Popen(order["command"], stdin=subprocess.DEVNULL, env=changed(os.environ, order["environment"]))
    while child.poll() is None:
        if asked or is_orphan(order["parent"]):
            end_family(child, GRACE if asked else 0.0)
            break
        time.sleep(CHECK_EVERY)
    return child.wait()


def changed(variables: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The variables with some set and some removed."""
    merged = {**variables, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def end_family(child: subprocess.Popen[bytes], grace: float) -> None:
    """End a process and all its descendants: asked first, killed after ``grace`` seconds; returns when all are gone."""
    family = _descendants(child.pid)
    child.terminate()
    deadline = time.monotonic() + grace
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(CHECK_EVERY)
    family = [*dict.fromkeys([*family, *_descendants(child.pid)])]
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.kill()
    child.kill()
    child.wait()
    psutil.wait_procs(family, timeout=grace or 1.0)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


if __name__ == "__main__":
    sys.exit(main())
