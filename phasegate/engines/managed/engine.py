"""A managed engine: found where it is installed, started on a model, restarted between sessions, stopped at the end."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phasegate.core.identity import UNKNOWN, ServerIdentity, this_hardware, this_host
from phasegate.engines.ask import AskError, ask, tell
from phasegate.engines.attached import AttachedEngine
from phasegate.engines.base import EngineError
from phasegate.engines.cores import client_cores, engine_cores, start_cores
from phasegate.engines.detect import detect
from phasegate.engines.generated.hf_store import ensure_hf_model
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.store import ensure_model
from phasegate.engines.generated.vocabulary import vocabulary
from phasegate.engines.managed.kind import Kind, Launch
from phasegate.engines.managed.kinds import KINDS
from phasegate.engines.managed.places import Place, find
from phasegate.engines.managed.process import ServerProcess, free_port
from phasegate.engines.profile import profile_named
from phasegate.engines.started import StartedEngine
from phasegate.engines.temporary import new_folder, new_log

GENERATED = "generated"

START_SECONDS = 900.0
"""Longest wait for an engine to be ready: large weights from a slow disk and a compilation take minutes."""

ASK_EVERY = 0.1

NO_VERSION = (UNKNOWN, "b0-unknown")
"""What servers say that do not know their version: llama.cpp does not when it was built outside its repository."""

HF_SPEC = ModelSpec(weights="bf16")
GGUF_SPEC = ModelSpec()


@dataclass(frozen=True, slots=True)
class ManagedSettings:
    """What the user says about a managed engine.

    Attributes:
        args: more arguments for its server, as in a shell.
        model: path or name of weights; None takes the generated model.
        python: interpreter of the environment it is installed in; None looks for it.
        hardware: what it runs on, where that is not this machine's processor; None for what is found.
    """

    args: str = ""
    model: str | None = None
    python: str | None = None
    hardware: str | None = None


class ManagedEngine(StartedEngine):
    """A local server of one kind.

    Args:
        name: one of `KINDS`.
        settings: what the user says about it.
        log_path: where its log goes; None makes a file in the temporary folder.

    Attributes:
        last_launch: its last start, also when it is stopped; None before the first.

    Raises:
        EngineError: an argument that the suite sets itself, or arguments that no shell could split.
    """

    def __init__(self, name: str, settings: ManagedSettings | None = None, *, log_path: Path | None = None) -> None:
        self.kind = KINDS[name]
        self.settings = settings or ManagedSettings()
        self.log_path: Path | None = log_path
        self.start_seconds: float | None = None
        self._args = split_args(self.kind, self.settings.args)
        self._process: ServerProcess | None = None
        self._launch: Launch | None = None
        self.last_launch: Launch | None = None
        self._place: Place | None = None
        self._threads = max(1, len(start_cores()) - 1)
        super().__init__()

    @property
    def words(self) -> Sequence[str]:
        """Words that are one token each; empty for weights whose vocabulary is not ours."""
        return vocabulary(self._spec.vocabulary).words if self._is_generated else ()

    @property
    def base_url(self) -> str:
        """Where the API is.

        Raises:
            EngineError: it is not started.
        """
        return f"{self._root()}/v1"

    @property
    def model(self) -> str:
        """The name clients ask for."""
        if self.kind.names_model_by_path:
            return self._started().model
        return GENERATED if self._is_generated else Path(self.settings.model or "").name

    @property
    def pid(self) -> int | None:
        """Process number of its guard while it runs."""
        return self._process.pid if self._process is not None else None

    @property
    def client_cores(self) -> list[int]:
        """The cores that are left for the client; empty where nobody can pin."""
        return client_cores(self._threads)

    def start(self) -> None:
        """Start the server and wait until it has answered a request; does nothing where it runs.

        Raises:
            EngineError: it is not installed, the model cannot be read, or it did not get ready; one line that says
            what to do.
        """
        if self._process is not None and self._process.running:
            return
        self.stop()
        self._place = self._place or find(self.kind, self.settings.python)
        launch = self._launch = self.last_launch = self._new_launch(self._place)
        self.log_path = self.log_path or new_log(self.kind.name)
        began = time.monotonic()
        try:
            self._process = ServerProcess(
                self.command(), self.kind.environment(launch), engine_cores(self._threads), self.log_path
            )
            self._wait_until_ready(began + START_SECONDS)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began

    def command(self) -> list[str]:
        """Program and arguments of the present start."""
        launch = self._started()
        return [*self.kind.call(launch), *self.serving_words(launch)]

    def serving_words(self, launch: Launch) -> list[str]:
        """The serving settings of a start: the suite's own, and behind them the user's, which count."""
        return [*self.kind.flags(launch), *self._args]

    @property
    def pinned(self) -> bool:
        """Whether it has cores of its own."""
        return bool(engine_cores(self._threads))

    def stop(self) -> None:
        """End the server; safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        launch, self._launch = self._launch, None
        if launch is not None:
            shutil.rmtree(launch.folder, ignore_errors=True)

    def identity(self) -> ServerIdentity:
        """What the server tells, with what is known here of how it was started."""
        launch, place = self._started(), self._place
        told = detect(self.base_url, self.model)
        told_version = told.version if told.version not in NO_VERSION else None
        return ServerIdentity(
            engine=self.kind.name,
            version=told_version or (place.version if place is not None else None) or UNKNOWN,
            model=self._model_name,
            settings={
                **told.settings,
                "flags": shlex.join(self.serving_words(launch)),
                "threads": len(launch.cores),
                "pinned": self.pinned,
            },
            hardware=self.settings.hardware or this_hardware(),
            host=this_host(),
            sources={
                **told.sources,
                "engine": "--perf-engine",
                "version": told.sources["version"] if told_version else "the package",
                "settings": "the suite",
                "hardware": "--perf-hardware" if self.settings.hardware else "this machine",
                "host": "this machine",
            },
        )

    def reset_prefix_cache(self) -> bool:
        """Empty the prefix cache where the engine has a door for it."""
        paths = profile_named(self.kind.name).reset_paths(self.identity().settings)
        try:
            for path in paths:
                tell(self._root() + path)
        except AskError:
            return False
        return bool(paths)

    def tokenize(self, text: str) -> int | None:
        """Tokens of a text where the engine has ``/tokenize``."""
        return AttachedEngine(self.base_url, self.model).tokenize(text)

    @property
    def _is_generated(self) -> bool:
        return self.settings.model in (None, GENERATED)

    @property
    def _spec(self) -> ModelSpec:
        return GGUF_SPEC if self.kind.form == "gguf" else HF_SPEC

    @property
    def _model_name(self) -> str:
        """What the model is, for people and as part of a baseline's key."""
        if self._is_generated:
            return self._spec.file_name.removesuffix(".gguf") + f".{self.kind.form}"
        given = str(self.settings.model)
        # A path differs between machines and is nobody's business; the name of a hub does not.
        return Path(given).name if Path(given).exists() else given

    def _weights(self) -> str:
        if self._is_generated:
            return str(ensure_model(self._spec) if self.kind.form == "gguf" else ensure_hf_model(self._spec))
        given = Path(os.path.expanduser(str(self.settings.model)))  # noqa: PTH111 - Path's fails without a home folder
        if self.kind.form == "gguf" and not given.is_file():
            raise EngineError(f"--perf-engine-model {given}: no such file; {self.kind.name} reads a GGUF file")
        # What is no path may be the name of weights that the engine finds in its own cache.
        return str(given.resolve()) if given.exists() else str(given)

    def _new_launch(self, place: Place) -> Launch:
        return Launch(
            program=place.program,
            model=self._weights(),
            alias=GENERATED if self._is_generated else Path(str(self.settings.model)).name,
            port=free_port(),
            cores=tuple(engine_cores(self._threads) or start_cores() or range(os.cpu_count() or 1)),
            on_gpu=has_gpu(),
            generated=self._is_generated,
            folder=new_folder(self.kind.name),
        )

    def _started(self) -> Launch:
        if self._launch is None:
            raise EngineError(f"the engine {self.kind.name} is not started")
        return self._launch

    def _root(self) -> str:
        return f"http://127.0.0.1:{self._started().port}"

    def _wait_until_ready(self, deadline: float) -> None:
        """Until the server has answered a request for a token: doors may open before the weights are read."""
        assert self._process is not None
        problem = "it does not listen"
        while time.monotonic() < deadline:
            if not self._process.running:
                raise EngineError(f"{self.kind.name} did not start: it ended{self._process.log_end()}")
            try:
                ask(f"{self.base_url}/models")
                ask(f"{self.base_url}/completions", body=self._first_request(), seconds=deadline - time.monotonic())
                return
            except AskError as error:
                problem = str(error)
                if error.status is not None and 400 <= error.status < 500 and error.status not in (404, 429):
                    break
            time.sleep(ASK_EVERY)
        raise EngineError(f"{self.kind.name} started but does not answer ({problem}){self._process.log_end()}")

    def _first_request(self) -> dict[str, object]:
        return {"model": self.model, "prompt": "Hello", "max_tokens": 2, "temperature": 0}


def split_args(kind: Kind, text: str) -> list[str]:
    """The words of ``--perf-engine-args``.

    Raises:
        EngineError: one line naming the argument and why it cannot be given.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise EngineError(f"--perf-engine-args: {error}; quote it as in a shell") from None
    for word in words:
        flag = word.partition("=")[0]
        if flag in kind.refused:
            raise EngineError(f"--perf-engine-args: leave {flag} out: {kind.refused[flag]}")
    return words


def has_gpu() -> bool:
    """Whether this machine has a GPU that an engine would compute on (NVIDIA's or AMD's device files)."""
    return bool(glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/kfd"))  # noqa: PTH110, PTH207
