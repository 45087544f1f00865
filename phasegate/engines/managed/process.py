"""The process of a managed engine: started under a guard, watched until it is ready, stopped, its log kept."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from phasegate.engines.managed.guard import GRACE
from phasegate.engines.profile import profiles

LAST_LINES = 3
"""How many lines of the log an error quotes, and"""

LAST_CHARACTERS = 600
"""how much of them at most."""

_OWN_PYTHON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""Variables of this Python that would lead another environment's astray."""


def _keys() -> set[str]:
    """Variables with keys of servers elsewhere; a local engine has no use for them."""
    return {"OPENAI_API_KEY", *(name for profile in profiles() for name in profile.key_env)}


def free_port() -> int:
    """A port of the loopback address that nobody listens on at this moment."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


class ServerProcess:
    """One running command.

    Args:
        command: program and arguments.
        environment: variables to set, or to remove where the value is None.
        cores: where it may run; empty for anywhere.
        log_path: where its output goes, behind what is there.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str | None], cores: Sequence[int], log_path: Path
    ) -> None:
        self.log_path = log_path
        self._log_start = log_path.stat().st_size if log_path.exists() else 0
        order = {
            "command": list(command),
            "environment": {**dict.fromkeys((*_OWN_PYTHON, *_keys())), **environment},
            "cores": list(cores),
            "parent": os.getpid(),
        }
        with log_path.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-m", "phasegate.engines.managed.guard", json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A session of its own: a Ctrl-C in the terminal is for the suite, which then stops the engine.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Number of the guard, which is also that of the process group."""
        return self._guard.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._guard.poll() is None

    def stop(self) -> None:
        """End it and everything it started; safe to call twice."""
        with contextlib.suppress(ProcessLookupError):
            self._guard.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(2 * GRACE)
        # Whatever is left of the group, also where the guard itself was killed.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        self._guard.wait()

    def log_end(self) -> str:
        """What this start's log says last, and where it is, for the end of a message."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            text = log.read().decode("utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()]
        last = " / ".join([*dict.fromkeys(telling or lines)][-LAST_LINES:])
        return f"; its log says: {last[-LAST_CHARACTERS:] or '(nothing)'} ({self.log_path})"
