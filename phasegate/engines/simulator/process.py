"""The simulator's process: started, asked and ended. Nothing here knows about the suite.

The child gets a session of its own, so a Ctrl-C meant for the test run does not cut answers off, and it looks after
itself should this process die without a word (`engines.orphan`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from phasegate.engines.base import EngineError
from phasegate.engines.simulator.config import KEY_VARIABLE, SimulatorConfig

START_SECONDS = 30.0
STOP_SECONDS = 3.0
ASK_SECONDS = 30.0


class SimulatorProcessError(EngineError):
    """The simulator did not do what was asked of it. The message is one line."""


class SimulatorProcess:
    """One running simulator.

    Args:
        config: its settings.
        port: the port on loopback; 0 takes a free one.
        api_key: what clients must present, or None for no check.
        log_path: where its standard error goes, or None to drop it.

    Raises:
        SimulatorProcessError: it did not start.
    """

    def __init__(
        self, config: SimulatorConfig, port: int = 0, api_key: str | None = None, log_path: Path | None = None
    ) -> None:
        self._api_key = api_key
        self._process = _spawn(config, port, api_key, log_path)
        try:
            self.address = str(self._ready_line(START_SECONDS)["address"])
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def _ready_line(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        out = self._process.stdout
        assert out is not None
        while time.monotonic() < deadline:
            if select.select([out], [], [], 0.1)[0]:
                line = out.readline()
                if line:
                    return dict(json.loads(line))
                status = self._process.wait(STOP_SECONDS)
                raise SimulatorProcessError(f"the simulator ended with status {status} before it was ready")
        raise SimulatorProcessError(f"the simulator was not ready {seconds:g} s after its start")

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """The body of the answer at a path; a POST when a body is given, else a GET.

        Raises:
            SimulatorProcessError: no answer, or an error status.
        """
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data)
        if self._api_key is not None:
            request.add_header("Authorization", f"Bearer {self._api_key}")
        # An empty ProxyHandler: loopback is never reached through a proxy, whatever the environment says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=ASK_SECONDS) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, OSError) as error:
            raise SimulatorProcessError(f"the simulator did not answer at {path}: {error}") from None

    def stop(self) -> None:
        """End it, by force where asking does not help; safe to call twice."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _spawn(config: SimulatorConfig, port: int, api_key: str | None, log_path: Path | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "phasegate.engines.simulator", "--config", config.to_json()]
    command += ["--port", str(port), "--parent", str(os.getpid())]
    environment = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    if api_key is not None:
        environment[KEY_VARIABLE] = api_key
    with contextlib.ExitStack() as stack:
        errors: IO[bytes] | int = subprocess.DEVNULL
        if log_path is not None:
            errors = stack.enter_context(log_path.open("ab"))
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
