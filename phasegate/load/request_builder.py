"""The openai package at the door: it builds each request, we take the finished bytes and send them ourselves.

Base URL, key, organisation, Azure paths, default headers and JSON all come from ``AsyncOpenAI``. Its HTTP
client is given a transport that keeps the request instead of sending it. So requests are built before the
measured window (building one costs as much as reading a few hundred chunks), and the clock starts at the
write of finished bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2
from openai import AsyncAzureOpenAI, AsyncOpenAI, Omit

from phasegate.core.request import AT_ROOT, COUNTS_UNASKED, ENDPOINTS, Request
from phasegate.core.target import Target

NO_KEY = "none"
"""openai insists on a key; when there is none this stands in for it and the header is left out again."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request ready for the wire.

    Attributes:
        request: what it was built from.
        message: the finished HTTP request. Its headers hold the key, so it is never in a repr.
    """

    request: Request
    message: httpx2.Request = field(repr=False)

    def to_bytes(self) -> bytes:
        """The request as HTTP/1.1 sends it: head and body."""
        url = self.message.url
        lines = [self.message.method.encode("ascii") + b" " + url.raw_path + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.message.headers.raw]
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.message.content


class _Unsent(httpx2.AsyncBaseTransport):
    """Answers what openai has built with an empty page instead of sending it."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, request=request)


class Door:
    """Builds requests for one target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._http = httpx2.AsyncClient(transport=_Unsent(), trust_env=False)
        self._openai = connect_openai(target, self._http)

    async def prepare(self, request: Request) -> Outgoing:
        """The finished HTTP request. No byte leaves this process.

        Raises:
            ValueError: a header value cannot be sent.
        """
        asks = self._target.include_usage and request.endpoint not in COUNTS_UNASKED
        answer = await self._openai.post(
            self._place(request.endpoint), cast_to=httpx2.Response, body=full_body(request.body, self._target, asks)
        )
        message = answer.request
        self._move_key(message, request.endpoint)
        for name, value in message.headers.raw:
            if b"\r" in value or b"\n" in value:
                raise ValueError(f"header {name.decode('latin-1')}: its value has a line break in it; remove it")
        return Outgoing(request, message)

    def _place(self, endpoint: str) -> str:
        """Path below the base URL, or the whole address of an endpoint that is not below it."""
        path = ENDPOINTS[endpoint]
        return self._target.base_url.rstrip("/").removesuffix("/v1") + path if endpoint in AT_ROOT else path

    def _move_key(self, message: httpx2.Request, endpoint: str) -> None:
        """Leave the key out where there is none, and put it where the endpoint wants it."""
        key, header = self._target.api_key, self._target.key_headers.get(endpoint)
        if key is None or header is not None:
            message.headers.pop("authorization", None)
        if key is not None and header is not None:
            message.headers[header] = key

    async def close(self) -> None:
        """Let openai and its client go."""
        await self._http.aclose()


def full_body(body: Mapping[str, object], target: Target, asks_usage: bool) -> dict[str, object]:
    """The JSON body with the model, streaming and, where the endpoint knows it, the request for token counts in it."""
    full: dict[str, object] = {"model": target.model, **body, "stream": True}
    given = body.get("stream_options")
    options: dict[str, object] = dict(given) if isinstance(given, Mapping) else {}
    if asks_usage:
        options.setdefault("include_usage", True)
    if options:
        full["stream_options"] = options
    return full


def connect_openai(target: Target, http_client: httpx2.AsyncClient) -> AsyncOpenAI:
    """An openai client for the target that never retries and asks for an uncompressed answer.

    Compression would delay tokens in the compressor's window and hide them from a reader of raw bytes.
    """
    key = target.api_key if target.api_key is not None else NO_KEY
    headers: dict[str, str | Omit] = {"Accept": "text/event-stream", "Accept-Encoding": "identity", **target.headers}
    timeout = httpx2.Timeout(target.idle_timeout, connect=target.connect_timeout, pool=None)
    if target.azure is None:
        return AsyncOpenAI(
            base_url=target.base_url,
            api_key=key,
            max_retries=0,
            timeout=timeout,
            default_headers=headers,  # type: ignore[arg-type]
            http_client=http_client,
        )
    token = key if target.azure.key_is_token else None
    deployment = target.azure.deployment
    return AsyncAzureOpenAI(
        azure_endpoint=target.base_url,
        azure_deployment=deployment,
        api_version=target.azure.api_version,
        api_key=None if token is not None else key,
        azure_ad_token=token,
        max_retries=0,
        timeout=timeout,
        default_headers=headers,  # type: ignore[arg-type]
        http_client=http_client,
    )
