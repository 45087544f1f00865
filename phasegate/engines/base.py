"""What the suite needs of an engine, whether it starts one or finds one running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from phasegate.core.identity import ServerIdentity


class EngineError(RuntimeError):
    """An engine cannot be started, reached or used. The message is one line that names the remedy."""


@runtime_checkable
class Engine(Protocol):
    """A server that can be measured.

    Attributes:
        can_restart: whether `restart` gives a fresh engine; True for those the suite starts itself.
        log_path: what the engine's process had to say, or None.
    """

    can_restart: bool
    log_path: Path | None

    @property
    def words(self) -> Sequence[str]:
        """Words that are one token each where the vocabulary is known; empty where it is not."""
        ...

    @property
    def base_url(self) -> str:
        """Where the API is, with its version path."""
        ...

    @property
    def model(self) -> str:
        """The model to ask for."""
        ...

    @property
    def api_key(self) -> str | None:
        """What clients present, or None for nothing."""
        ...

    def start(self) -> None:
        """Be ready to be measured.

        Raises:
            EngineError: it cannot be.
        """
        ...

    def stop(self) -> None:
        """End what was started; safe to call twice, does nothing to a server that was found running."""
        ...

    def restart(self) -> None:
        """Begin a new session on a fresh engine; does nothing where ``can_restart`` is False."""
        ...

    def identity(self) -> ServerIdentity:
        """What the server tells about itself."""
        ...

    def reset_prefix_cache(self) -> bool:
        """Forget cached prompts; False where the engine has no way to."""
        ...

    def tokenize(self, text: str) -> int | None:
        """How many tokens a text has without a template; None where the engine does not tell."""
        ...
