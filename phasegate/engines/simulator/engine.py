"""The simulator as an engine of the suite: it can start, stop, restart into a new session, and tell the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phasegate.core.identity import ServerIdentity
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.engines.base import EngineError
from phasegate.engines.simulator.config import SimulatorConfig, SimulatorConfigError
from phasegate.engines.simulator.process import SimulatorProcess, SimulatorProcessError
from phasegate.engines.simulator.truth import Truth, read_log
from phasegate.engines.started import StartedEngine


class SimulatorEngine(StartedEngine):
    """An engine whose true timing is known.

    Args:
        config: settings of the first session.
        api_key: what clients must present, or None for no check.
        log_path: where its process writes what it has to say, or None to drop it.
    """

    words: Sequence[str] = COMMON_WORDS
    """Words that are one token each; for the simulator every word is."""

    def __init__(
        self, config: SimulatorConfig | None = None, *, api_key: str | None = None, log_path: Path | None = None
    ) -> None:
        super().__init__()
        self.config = config or SimulatorConfig()
        self.log_path = log_path
        self._api_key = api_key
        self._process: SimulatorProcess | None = None

    @classmethod
    def from_words(cls, text: str, *, api_key: str | None = None, log_path: Path | None = None) -> SimulatorEngine:
        """An engine with settings such as ``"prefill_factor=1.2 cache=off"``.

        Raises:
            EngineError: a setting is unknown or cannot be used.
        """
        try:
            return cls(SimulatorConfig.from_words(text), api_key=api_key, log_path=log_path)
        except SimulatorConfigError as error:
            raise EngineError(str(error)) from None

    @property
    def address(self) -> str:
        """Scheme, host and port.

        Raises:
            SimulatorProcessError: it is not started.
        """
        return self._running().address

    @property
    def base_url(self) -> str:
        """Where the API is."""
        return f"{self.address}/v1"

    @property
    def model(self) -> str:
        """The one model's name."""
        return self.config.model

    @property
    def api_key(self) -> str | None:
        """What clients must present, or None."""
        return self._api_key

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.running

    def start(self) -> None:
        """Start the process; does nothing where one runs.

        Raises:
            SimulatorProcessError: it did not get ready.
        """
        if not self.running:
            self.stop()
            self._process = SimulatorProcess(self.config, api_key=self._api_key, log_path=self.log_path)

    def stop(self) -> None:
        """End the process; safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def restart(self) -> None:
        """Begin the next session: another session effect, an empty cache, request numbers from 1."""
        self.reconfigure(session=self.config.session + 1)

    def reconfigure(self, **changes: Any) -> None:
        """Go on with changed settings, in a new process where one runs.

        Raises:
            SimulatorConfigError: an unknown setting, or a value that cannot be used.
        """
        self.config = self.config.changed(**changes)
        if self._process is not None:
            self.stop()
            self.start()

    def identity(self) -> ServerIdentity:
        """What the running server tells of itself; its hardware is called simulated, because no hardware shows."""
        told = self._object("/props")
        return ServerIdentity(
            engine=str(told["engine"]),
            version=str(told["version"]),
            model=self.model,
            settings=told["settings"],
            hardware="simulated",
            host=None,
            sources={"engine": "/props", "version": "/props", "settings": "/props", "hardware": "the engine's nature"},
        )

    def reset_prefix_cache(self) -> bool:
        """Forget cached prompts; True, because the simulator always can."""
        self._running().ask("/reset_prefix_cache", {})
        return True

    def tokenize(self, text: str) -> int:
        """How many tokens a text has, without a chat template."""
        return int(self._object("/tokenize", {"content": text})["count"])

    def truths(self) -> list[Truth]:
        """The truth log: every generation request since the start or the last `reset_truths`."""
        return read_log(self._running().ask("/log"))

    def reset_truths(self) -> None:
        """Forget the truth of requests that have ended; request numbers go on."""
        self._running().ask("/log/reset", {})

    def _object(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return dict(json.loads(self._running().ask(path, body)))

    def _running(self) -> SimulatorProcess:
        if self._process is None:
            raise SimulatorProcessError("the simulator is not started")
        return self._process
