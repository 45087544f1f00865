"""What a delivery needs of the connection that an answer goes out on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Wire(Protocol):
    """The connection an answer goes out on."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the kernel."""

    def done(self) -> None:
        """The answer is complete; the connection may take the next request."""

    def reset(self) -> None:
        """Close with RST, throwing away what has not left."""

    def half_close(self) -> None:
        """Close the sending side with FIN, after what was written."""

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Act after some real seconds, unless the connection is gone by then."""
