"""What engines that the suite starts have in common: they are context managers, and they end when this process does."""

from __future__ import annotations

import atexit
import weakref
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TypeVar

Started = TypeVar("Started", bound="StartedEngine")


class StartedEngine(ABC):
    """A local engine of this process: started and stopped by it, restarted at will, stopped at exit."""

    can_restart = True

    def __init__(self) -> None:
        # A weak reference, so that registering for the exit does not keep the engine alive.
        atexit.register(_stop_if_alive, weakref.ref(self))

    def __enter__(self: Started) -> Started:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def api_key(self) -> str | None:
        """None: the loopback server asks for no key."""
        return None

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers; does nothing where it runs."""

    @abstractmethod
    def stop(self) -> None:
        """End the server; safe to call twice."""

    def restart(self) -> None:
        """A fresh process: empty caches, a new start."""
        self.stop()
        self.start()


def _stop_if_alive(engine: weakref.ref[StartedEngine]) -> None:
    alive = engine()
    if alive is not None:
        alive.stop()
