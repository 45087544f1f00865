"""A client of plain sockets, so that the tests see every byte and how a connection ends."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RawAnswer:
    """What came back.

    Attributes:
        raw: every byte.
        ending: ``whole`` (the body ended as HTTP says), ``closed`` (FIN before that), ``reset`` or ``silence``.
    """

    raw: bytes
    ending: str

    @property
    def head(self) -> str:
        """The response head."""
        return self.raw.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def status(self) -> int:
        """The status code."""
        return int(self.head.split(" ")[1])

    @property
    def body(self) -> bytes:
        """The body, transfer coding removed."""
        rest = self.raw.partition(b"\r\n\r\n")[2]
        if "chunked" not in self.head:
            return rest
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size or b"0", 16)
            body, rest = body + rest[:length], rest[length + 2 :]
        return body

    @property
    def payloads(self) -> list[str]:
        """The data of every event."""
        events = self.body.decode().split("\n\n")
        return [event.removeprefix("data: ") for event in events if event]

    @property
    def chunks(self) -> list[Any]:
        """Events that hold JSON, read."""
        return [json.loads(payload) for payload in self.payloads if payload.startswith("{") and payload[-1] == "}"]

    @property
    def texts(self) -> list[str]:
        """The text of every event of a chat stream that has some."""
        deltas = [chunk["choices"][0]["delta"] for chunk in self.chunks if chunk.get("choices")]
        return [delta["content"] for delta in deltas if delta.get("content")]

    @property
    def usage(self) -> Any:
        """The usage of a stream, or None."""
        found = [chunk["usage"] for chunk in self.chunks if "usage" in chunk]
        return found[-1] if found else None

    @property
    def finish_reason(self) -> str | None:
        """Why the stream says it ended, or None."""
        found = [choice["finish_reason"] for chunk in self.chunks for choice in chunk.get("choices", ())]
        return next((reason for reason in found if reason), None)


def chat(words: int = 4, max_tokens: int = 8, stream: bool = True, **more: Any) -> dict[str, Any]:
    """The body of a chat request whose prompt has that many words."""
    prompt = " ".join(f"w{index}" for index in range(words))
    body: dict[str, Any] = {"model": "simulated", "messages": [{"role": "user", "content": prompt}]}
    body |= {"max_tokens": max_tokens, "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body | more


def connect(address: str) -> socket.socket:
    """A connection to the simulator."""
    parts = urlsplit(address)
    return socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=10)


def post_bytes(path: str, body: dict[str, Any], *headers: str) -> bytes:
    """A whole request."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: simulator", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def send(
    address: str, body: dict[str, Any], *headers: str, path: str = "/v1/chat/completions", rate_limit: float = 5.0
) -> RawAnswer:
    """One request on a connection of its own."""
    with connect(address) as sock:
        sock.sendall(post_bytes(path, body, *headers))
        return read_answer(sock, rate_limit)


def read_answer(sock: socket.socket, rate_limit: float = 5.0) -> RawAnswer:
    """Read until the answer is whole, the connection ends, or nothing comes for ``patience`` seconds."""
    sock.settimeout(rate_limit)
    raw = b""
    while not _whole(raw):
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            return RawAnswer(raw, "reset")
        except TimeoutError:
            return RawAnswer(raw, "silence")
        if not data:
            return RawAnswer(raw, "closed")
        raw += data
    return RawAnswer(raw, "whole")


def _whole(raw: bytes) -> bool:
    head, end, body = raw.partition(b"\r\n\r\n")
    if not end:
        return False
    if b"chunked" in head:
        return body.endswith(b"\r\n0\r\n\r\n") or body == b"0\r\n\r\n"
    length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return bool(length) and len(body) >= int(length[0].split(b":")[1])
