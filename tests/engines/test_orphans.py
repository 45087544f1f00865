"""An engine ends when the process that started it is gone, even one that was killed with SIGKILL."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

LIMIT = 10.0
"""Seconds an engine may outlive its parent."""

START = "from phasegate.engines.embedded import EmbeddedEngine; e = EmbeddedEngine(); "
IN_THE_MAIN_THREAD = START + "e.start(); print(e.pid, flush=True); import time; time.sleep(600)"
IN_A_THREAD_THAT_ENDED = (
    START + "import threading; t = threading.Thread(target=e.start); t.start(); t.join(); "
    "print(e.pid, flush=True); import time; time.sleep(600)"
)
WHILE_IT_LOADS = (
    START + "import phasegate.engines.embedded as m; spawn = m._spawn; "
    "m._spawn = lambda *given: (lambda p: (print(p.pid, flush=True), p)[1])(spawn(*given)); "
    "e.start(); import time; time.sleep(600)"
)
NO_ENGINE = (
    "import subprocess, sys, time; "
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True); "
    "print(p.pid, flush=True); time.sleep(600)"
)


def orphan_of(program: str, how: int) -> psutil.Process:
    """The child whose number a program prints, after the program was killed that way."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(how)
    return child


def is_gone_within(child: psutil.Process, seconds: float) -> bool:
    """Whether the process ends in time; one that nobody has collected yet counts as ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not child.is_running() or child.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.engine
@pytest.mark.parametrize(
    ("program", "how"),
    [
        (IN_THE_MAIN_THREAD, signal.SIGKILL),
        (IN_A_THREAD_THAT_ENDED, signal.SIGKILL),
        (WHILE_IT_LOADS, signal.SIGKILL),
        (IN_THE_MAIN_THREAD, signal.SIGTERM),
    ],
    ids=["killed", "started by a thread", "while it loads", "terminated"],
)
def test_no_engine_outlives_its_parent(program: str, how: int) -> None:
    """However the parent ends, wherever it stood."""
    child = orphan_of(program, how)
    try:
        assert is_gone_within(child, LIMIT)
    finally:
        if child.is_running():
            child.kill()


@pytest.mark.engine
def test_an_engine_stays_when_only_the_thread_that_started_it_ends() -> None:
    """The kernel's parent-death signal would end it here: it follows threads."""
    with subprocess.Popen([sys.executable, "-c", IN_A_THREAD_THAT_ENDED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        try:
            assert not is_gone_within(child, 0.6)
        finally:
            parent.kill()
    assert is_gone_within(child, LIMIT)


def test_a_child_without_the_watch_does_outlive_its_parent() -> None:
    """The check above can fail: an ordinary child is still there."""
    child = orphan_of(NO_ENGINE, signal.SIGKILL)
    try:
        assert not is_gone_within(child, 0.6)
    finally:
        child.kill()
