"""What is to be sent: one request of a workload, before any server or connection is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from phasegate.core.timeline import Expected

ENDPOINTS = {"chat": "/chat/completions", "completions": "/completions", "messages": "/messages", "ollama": "/api/chat"}
"""Path for each endpoint a request may name: below the base URL, or for those in `AT_ROOT` beside its ``/v1``."""

AT_ROOT = frozenset({"ollama"})

COUNTS_UNASKED = frozenset({"messages", "ollama"})
"""Endpoints that always send token counts and know no ``stream_options``."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the workload wants it.

    Attributes:
        request_id: unique within a run.
        endpoint: one of `ENDPOINTS`.
        body: the JSON body without what belongs to the target or to measuring. ``model`` is taken from the
            target unless the body names one; ``stream`` is always true; ``stream_options`` asks for usage
            unless the target says no, and further options in the body are kept.
        expected: what the decoder is to check the answer against.
        due: the moment on the run's monotonic clock at which a schedule wants it sent; None in a closed
            loop, where a request is due when its turn and its connection have come.
    """

    request_id: str
    endpoint: str
    body: Mapping[str, object]
    expected: Expected = field(default_factory=Expected)
    due: float | None = None

    def __post_init__(self) -> None:
        if self.endpoint not in ENDPOINTS:
            known = ", ".join(ENDPOINTS)
            raise ValueError(f"request {self.request_id}: unknown endpoint {self.endpoint!r}; use one of {known}")
        if self.body.get("stream") is False:
            raise ValueError(
                f"request {self.request_id}: the body says stream: false, but only streams have phases; remove it"
            )
