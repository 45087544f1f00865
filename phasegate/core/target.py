"""Where requests go and how long they may take. The key is never shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CONNECT_TIMEOUT = 10.0
"""Seconds for name, TCP and TLS together: three SYNs (1 + 2 + 4 s) and a slow handshake fit."""

IDLE_TIMEOUT = 120.0
"""Seconds without a byte: a 100k-token prompt on one slow GPU stays silent for about a minute."""

TIMEOUT = 600.0
"""Seconds for a whole answer: openai's own default."""


@dataclass(frozen=True, slots=True)
class Azure:
    """What an Azure deployment needs beside address and key.

    Attributes:
        api_version: such as ``"2024-10-21"``.
        deployment: name of the deployment; None takes the model's name.
        key_is_token: the target's key is a Microsoft Entra token, not an API key.
    """

    api_version: str
    deployment: str | None = None
    key_is_token: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A server under measurement, as its clients address it.

    Attributes:
        base_url: with the version path, such as ``"http://127.0.0.1:8000/v1"``; for Azure the endpoint.
        model: name sent in every request that does not name one itself.
        api_key: sent as openai sends it; None sends no authorization at all. Never in a repr.
        headers: further request headers; their values may be secrets too and are never in a repr.
        key_headers: endpoint -> name of the header that holds the key there; elsewhere it is sent as openai does.
        azure: set for an Azure deployment.
        connect_timeout: seconds for name, TCP and TLS together; None waits for ever.
        idle_timeout: longest silence in seconds, counted from the send and from every byte after it, so it
            also bounds the wait for the first byte; None waits for ever.
        timeout: seconds from the send to the end of the answer; None waits for ever.
        include_usage: whether to ask for token counts (``stream_options.include_usage``). Turn off only for
            servers that refuse it: without counts, time per output token stays undefined.
        transport: ``"auto"``, ``"socket"`` (the lean reader) or ``"httpx2"`` (openai's own transport, the
            only one that goes through a proxy); auto takes the socket unless a proxy applies.
    """

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_headers: Mapping[str, str] = field(default_factory=dict)
    azure: Azure | None = None
    connect_timeout: float | None = CONNECT_TIMEOUT
    idle_timeout: float | None = IDLE_TIMEOUT
    timeout: float | None = TIMEOUT
    include_usage: bool = True
    transport: str = "auto"

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"base URL {_without_secret(self.base_url)!r} is not an address; "
                "write one such as http://127.0.0.1:8000/v1"
            )
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                f"base URL {_without_secret(self.base_url)!r} has a user or password in it, which reports would show; "
                "send them as a header instead"
            )
        for name in ("connect_timeout", "idle_timeout", "timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
                raise ValueError(f"{name} {seconds!r} must be a positive number of seconds, or None")
        if self.transport not in ("auto", "socket", "httpx2"):
            raise ValueError(f"transport {self.transport!r} is unknown; use auto, socket or httpx2")


def _without_secret(url: str) -> str:
    """The address without the user and password that some people write into it."""
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    return head.split("://", 1)[0] + "://***@" + tail
