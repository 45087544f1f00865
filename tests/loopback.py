"""A loopback HTTP server of known timing, for tests: it plays scripts and logs when each piece really left.

It runs an event loop in a thread of its own. Moments in the log are on the same monotonic clock as the
client's. What it answers is an `Answer`, or a function from the request to one. It can also do what no
good server does: reset, stop halfway, dribble its head, say keep-alive and close, say nothing at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any

SSE = (("content-type", "text/event-stream"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """A script.

    Attributes:
        pieces: seconds after the request was read, and body bytes to write then.
        status: HTTP status.
        headers: beside the framing ones.
        framing: ``"chunked"``, ``"length"`` or ``"close"`` (the body ends with the connection).
        ending: ``"end"`` finishes the body; ``"cut"`` closes inside it; ``"reset"`` sends RST inside it;
            ``"hang"`` stays silent inside it; ``"refuse"`` closes without a single byte.
        ends_after: seconds after the request was read at which the ending happens; None right after the last piece.
        keep_alive: whether the connection stays open after a complete body.
        head_pause: seconds between single bytes of the head; 0 sends it whole with the first piece.
        early_head: send the head at once instead of with the first piece.
        raw: when not None, sent instead of everything else, as it stands.
    """

    pieces: Sequence[tuple[float, bytes]] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = SSE
    framing: str = "chunked"
    ending: str = "end"
    ends_after: float | None = None
    keep_alive: bool = False
    head_pause: float = 0.0
    early_head: bool = False
    raw: bytes | None = None


@dataclass(slots=True)
class Served:
    """What the server saw and did for one request.

    Attributes:
        received_at: when the request had been read completely.
        head: request head as it came.
        body: parsed JSON body; None where there was none.
        left: moment and bytes of each piece, taken just before it was handed to the socket.
    """

    received_at: float
    head: str
    body: Any
    left: list[tuple[float, bytes]] = field(default_factory=list)


Script = Answer | Callable[[Served], Answer]


class Loopback:
    """The server; a context manager. ``log`` has one entry a request, in order of arrival."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.log: list[Served] = []
        self.connections = 0
        """Connections accepted so far."""
        self.open_connections = 0
        self.script = script
        """May be changed while serving; counts from the next request."""
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(2048)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Where it listens, with the version path."""
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> Loopback:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._accepted, sock=self._socket, ssl=self._tls), self._loop
        ).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self.die(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kill(self) -> None:
        """Die as a crashed server does: stop listening, drop every connection."""
        asyncio.run_coroutine_threadsafe(self.die(), self._loop).result()

    async def die(self) -> None:
        """The same, on the server's own loop."""
        self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self._serve(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            self.open_connections -= 1
            with contextlib.suppress(OSError):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; True when another may follow on this connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lengths = (int(ln.split(":")[1]) for ln in head.split("\r\n") if ln.lower().startswith("content-length"))
        raw = await reader.readexactly(next(lengths, 0))
        body = json.loads(raw) if raw else None
        served = Served(monotonic(), head, body)
        self.log.append(served)
        answer = self.script(served) if callable(self.script) else self.script
        await _play(answer, served, writer)
        if answer.ending == "hang":
            await reader.read()
        return answer.keep_alive and answer.ending == "end"


async def _play(answer: Answer, served: Served, writer: asyncio.StreamWriter) -> None:
    if answer.raw is not None:
        writer.write(answer.raw)
        return
    if answer.ending == "refuse":
        return
    head = _head(answer)
    if answer.head_pause:
        for place in range(len(head)):
            writer.write(head[place : place + 1])
            await asyncio.sleep(answer.head_pause)
        head = b""
    elif answer.early_head or not answer.pieces:
        writer.write(head)
        head = b""
    for after, data in answer.pieces:
        await _until(served.received_at + after)
        served.left.append((monotonic(), data))
        writer.write(head + _framed(answer, data))
        head = b""
    if answer.ends_after is not None:
        await _until(served.received_at + answer.ends_after)
    if answer.ending == "reset":
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    elif answer.ending == "end" and answer.framing == "chunked":
        writer.write(b"0\r\n\r\n")


async def _until(moment: float) -> None:
    await asyncio.sleep(max(moment - monotonic(), 0.0))


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in answer.headers)]
    if answer.framing == "chunked":
        lines.append("transfer-encoding: chunked")
    elif answer.framing == "length":
        missing = 1 if answer.ending in ("cut", "reset", "hang") else 0
        lines.append(f"content-length: {sum(len(data) for _, data in answer.pieces) + missing}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _framed(answer: Answer, data: bytes) -> bytes:
    if answer.framing == "chunked" and data:
        return b"%x\r\n%s\r\n" % (len(data), data)
    return data


def event(text: str) -> bytes:
    """One SSE event with a chat chunk that carries this text."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def usage(prompt: int, completion: int) -> bytes:
    """The closing events of a stream: finish reason, usage, and the end mark."""
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    count = {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    return b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in (finish, count)) + b"data: [DONE]\n\n"


def steady(tokens: int, *, first: float, gap: float, **options: Any) -> Answer:
    """An answer of so many one-token events: the first after ``first`` seconds, then one every ``gap``."""
    pieces = [(first + place * gap, event(f"t{place} ")) for place in range(tokens)]
    last = pieces[-1][0] if pieces else first
    return Answer(pieces=(*pieces, (last, usage(8, tokens))), **options)
