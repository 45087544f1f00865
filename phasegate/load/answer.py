"""From the raw reads of one connection to the answer in them: head, body, and when each part came.

Runs after the last byte. A body read keeps the moment of the network read it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.timeline import Read


@dataclass(frozen=True, slots=True)
class Answer:
    """What one connection brought. All empty or None when no complete head came."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    headers_at: float | None
    reads: tuple[Read, ...]


def unframe(arrivals: Sequence[float], pieces: Sequence[bytes]) -> Answer:
    """The answer in these reads, as far as it goes: a broken end leaves what came before it."""
    held = b""
    for place, at in enumerate(arrivals):
        status, head, held = _take_head(held + pieces[place])
        if status is not None:
            headers = tuple(_fields(head))
            rest = zip(arrivals[place + 1 :], pieces[place + 1 :], strict=True)
            reads = [Read(at, held), *(Read(moment, piece) for moment, piece in rest)]
            return Answer(status, headers, at, tuple(read for read in _body(dict(headers), reads) if read.data))
    return Answer(None, (), None, ())


def _take_head(data: bytes) -> tuple[int | None, bytes, bytes]:
    """Status and head of the first final response in the bytes, and what follows; None while incomplete."""
    while True:
        data = data.lstrip(b"\r\n")
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            return None, b"", data
        code = head.split(b"\r\n", 1)[0].partition(b" ")[2][:3]
        if not head.startswith(b"HTTP/") or not code.isdigit():
            return None, b"", b""
        if int(code) >= 200:
            return int(code), head, rest
        data = rest


def _fields(head: bytes) -> list[tuple[str, str]]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return [(name.strip().lower(), value.strip()) for name, colon, value in pairs if colon]


def _body(headers: dict[str, str], reads: list[Read]) -> list[Read]:
    if "transfer-encoding" in headers:
        return _joined_chunks(reads) if headers["transfer-encoding"].lower().endswith("chunked") else reads
    if "content-length" in headers and headers["content-length"].isdigit():
        return _first_bytes(reads, int(headers["content-length"]))
    return reads


def _first_bytes(reads: list[Read], count: int) -> list[Read]:
    kept = []
    for read in reads:
        kept.append(Read(read.at, read.data[:count]))
        count -= len(kept[-1].data)
    return kept


def _joined_chunks(reads: list[Read]) -> list[Read]:
    """The reads with the chunked coding taken out. Each byte keeps the moment of the read it came in."""
    body = []
    line = b""
    left = 0  # of the current chunk: data, then its closing CR LF as the last two
    for read in reads:
        parts = []
        data, position = read.data, 0
        while position < len(data):
            if left:
                taken = data[position : position + left]
                parts.append(taken[: max(0, left - 2)])
                left -= len(taken)
                position += len(taken)
                continue
            end = data.find(b"\n", position)
            line += data[position : end + 1 if end >= 0 else len(data)]
            position = end + 1 if end >= 0 else len(data)
            if end >= 0:
                size, line = _size(line), b""
                if size == 0:
                    body.append(Read(read.at, b"".join(parts)))
                    return body
                left = size + 2
        body.append(Read(read.at, b"".join(parts)))
    return body


def _size(line: bytes) -> int:
    """A chunk's size; an unreadable one ends the body as size 0 does (its exchange ended as PROTOCOL)."""
    try:
        return max(0, int(line.split(b";", 1)[0].strip(), 16))
    except ValueError:
        return 0
