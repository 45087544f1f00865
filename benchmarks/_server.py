"""A streaming server of known timing, in its own process: the truth the clients are measured against.

One thread, one epoll set, one heap of what is due: no event loop between the schedule and the socket, so
that it serves a thousand streams of 50 tokens a second from one core. For every request it logs when the
request reached this host (the kernel's receive stamp) and, for every chunk, the moment just before the
chunk was handed to the socket. Lateness against the schedule therefore does not matter: the log is the truth.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import re
import resource
import select
import socket
import struct
from collections.abc import Iterator
from time import clock_gettime_ns, monotonic, monotonic_ns
from typing import Any

SO_TIMESTAMPNS = 35
PROMPT_MARK = "request-"
"""Begins the first word of a prompt that says which request it is; for tools that cannot send a field of our choice."""

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(payload: dict[str, object]) -> bytes:
    frame = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1, "model": "m", **payload}
    return _chunk(b"data: " + json.dumps(frame, separators=(",", ":")).encode() + b"\n\n")


def _delta(text: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


TOKEN = _event(_delta("token "))


def _last(tokens: int) -> bytes:
    finish = _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    count = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": 8 + tokens}
    return finish + _event({"choices": [], "usage": count}) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _name(head: bytes, body: dict[str, Any]) -> str:
    """What tells the request from others: ``user``, or the first word of its prompt, or its x-request-id."""
    if "user" in body:
        return str(body["user"])
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    marked = text.split(maxsplit=1)[:1]
    if marked and marked[0].startswith(PROMPT_MARK):
        return str(marked[0].removeprefix(PROMPT_MARK))
    found = re.search(rb"\r\nx-request-id: *([^\r]+)", head, re.IGNORECASE)
    return found.group(1).decode() if found else ""


def _send_json(sock: socket.socket, plain: object) -> None:
    text = json.dumps(plain).encode()
    sock.setblocking(True)
    sock.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)
    )
    sock.setblocking(False)


def _moment(stamp: bytes) -> float:
    """The kernel's receive stamp, a realtime timespec, on the monotonic clock."""
    seconds, nanoseconds = struct.unpack("@qq", stamp)
    offset = clock_gettime_ns(0) - monotonic_ns()
    return float(seconds * 1_000_000_000 + nanoseconds - offset) / 1e9


class _Stream:
    """One connection: first its request, then its answer."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.held = b""
        self.name = ""
        self.arrived = 0.0
        self.left: list[float] = []
        self.due: Iterator[float] = iter(())
        self.tokens = 0


class Server:
    """Plays ``tokens`` one-token chunks to every request, the first after ``first`` seconds, then every ``gap``."""

    def __init__(self, first: float, gap: float, tokens: int) -> None:
        self._first, self._gap, self._tokens = first, gap, tokens
        self._end = _last(tokens)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        # Wanting stamps from the start, so that the kernel is stamping when the first request comes.
        self._listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._streams: dict[int, _Stream] = {}
        self._heap: list[tuple[float, int, _Stream]] = []
        self._log: list[dict[str, object]] = []

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Until killed."""
        while True:
            wait = max(0.0, self._heap[0][0] - monotonic()) if self._heap else None
            # select on the epoll file: epoll's own timeout is rounded to milliseconds.
            if select.select([self._epoll], [], [], wait)[0]:
                for descriptor, _ in self._epoll.poll(0):
                    if descriptor == self._listener.fileno():
                        self._accept()
                    else:
                        self._read(self._streams[descriptor])
            self._write_due()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._streams[sock.fileno()] = _Stream(sock)
            self._epoll.register(sock, select.EPOLLIN)

    def _read(self, stream: _Stream) -> None:
        try:
            data, notes, _, _ = stream.socket.recvmsg(65536, socket.CMSG_SPACE(16))
        except ConnectionError:
            data, notes = b"", []
        if not data:
            self._drop(stream)
            return
        stream.arrived = _moment(notes[0][2]) if notes else monotonic()
        stream.held += data
        head, found, body = stream.held.partition(b"\r\n\r\n")
        if not found:
            return
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if len(body) >= (int(lengths[0].split(b":")[1]) if lengths else 0):
            stream.held = b""
            self._answer(stream, head, body)

    def _answer(self, stream: _Stream, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET /log"):
            log, self._log = self._log, []
            _send_json(stream.socket, log)
            return
        if not head.startswith(b"POST "):
            # Load tools look whether a server is there and which model it has.
            _send_json(stream.socket, {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "-"}]})
            return
        stream.name = _name(head, json.loads(body))
        stream.left = []
        stream.tokens = 0
        stream.socket.send(HEAD)
        self._plan(stream, stream.arrived + self._first)

    def _plan(self, stream: _Stream, due: float) -> None:
        heapq.heappush(self._heap, (due, id(stream), stream))

    def _write_due(self) -> None:
        while self._heap and self._heap[0][0] <= monotonic():
            due, _, stream = heapq.heappop(self._heap)
            try:
                stream.left.append(monotonic())
                stream.tokens += 1
                if stream.tokens < self._tokens:
                    stream.socket.send(TOKEN)
                    self._plan(stream, due + self._gap)
                else:
                    # The end comes with the last token, as from real servers: some clients count it as one.
                    stream.socket.send(TOKEN + self._end)
                    self._log.append({"name": stream.name, "arrived": stream.arrived, "left": stream.left})
            except OSError:
                continue

    def _drop(self, stream: _Stream) -> None:
        del self._streams[stream.socket.fileno()]
        self._epoll.unregister(stream.socket)
        stream.socket.close()


def main() -> None:
    """Print the port, then serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=float, required=True)
    parser.add_argument("--gap", type=float, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(options.first, options.gap, options.tokens)
    print(server.port, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
