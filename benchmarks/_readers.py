"""The clients compared by `benchmarks.client`, each run in a process of its own.

Every reader sends ``count`` requests at once and says, for each, when its clock started, when it saw each
token, and what the process spent between the first clock start and the last token. Readers of raw bytes
find their tokens afterwards. The clock of the library loops starts at the call, as their users start it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import httpx2
from openai import AsyncOpenAI, DefaultAioHttpClient

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.load import reactor
from phasegate.load.client import Client
from phasegate.load.closed import run_closed
from phasegate.load.driving import LoadResult
from phasegate.load.files import allow_open_files
from phasegate.load.workers.driver import Several
from phasegate.load.workers.job import Job
from phasegate.load.workers.processes import ProcessWorkerPool

TOKEN_MARK = b'"content":"token '
READ_SIZE = 32768


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as a reader saw it: its clock start and the moment of every token."""

    name: str
    started: float
    tokens: list[float]


@dataclass(frozen=True, slots=True)
class Report:
    """One run of one reader. ``cpu`` in seconds over the window, ``memory`` in bytes of peak growth."""

    seen: list[Seen]
    cpu: float
    memory: int


Reads = list[tuple[float, bytes]]


def _tokens(reads: Reads) -> list[float]:
    return [at for at, data in reads for _ in range(data.count(TOKEN_MARK))]


def _body(name: str) -> dict[str, object]:
    return {
        "messages": [{"role": "user", "content": "word " * 200}],
        "max_tokens": 64,
        "user": name,
        "stream_options": {"include_usage": True},
    }


class _Meter:
    """CPU and memory of this process from here on."""

    def __init__(self) -> None:
        gc.collect()
        self._memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._cpu = time.process_time()

    def report(self, seen: list[Seen]) -> Report:
        """What was spent since."""
        cpu = time.process_time() - self._cpu
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._memory
        return Report(seen, cpu, grown * 1024)


class _Bare(asyncio.Protocol):
    """Nothing but stamps: one append a read."""

    def __init__(self) -> None:
        self.reads: Reads = []
        self.over = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.reads.append((monotonic(), data))
        if data.endswith(b"0\r\n\r\n"):
            self.over.set_result(None)


async def _bare(url: str, count: int) -> Report:
    target = Target(url, "m", api_key="none")
    async with Client(target) as builder:
        built = [await builder.prepare(Request(str(n), "chat", _body(str(n)))) for n in range(count)]
    payloads = [outgoing.to_bytes() for outgoing in built]
    loop = asyncio.get_running_loop()
    port = int(url.rsplit(":", 1)[1].partition("/")[0])
    links = [await loop.create_connection(_Bare, "127.0.0.1", port) for _ in payloads]
    meter = _Meter()
    started = []
    for (transport, _), payload in zip(links, payloads, strict=True):
        started.append(monotonic())
        transport.write(payload)
    for _, reader in links:
        await reader.over
    report = meter.report([Seen(str(n), started[n], _tokens(reader.reads)) for n, (_, reader) in enumerate(links)])
    for transport, _ in links:
        transport.close()
    return report


def _limits(count: int) -> httpx2.Limits:
    return httpx2.Limits(max_connections=count, max_keepalive_connections=count)


async def _openai(url: str, count: int, one: Callable[[AsyncOpenAI, str], object], http: httpx2.AsyncClient) -> Report:
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)
    await one(client, "warm-up")  # type: ignore[misc]  # imports, platform look-up
    meter = _Meter()
    seen = await asyncio.gather(*(one(client, str(n)) for n in range(count)))  # type: ignore[call-overload]
    report = meter.report(list(seen))
    await client.close()
    return report


async def _loop(client: AsyncOpenAI, name: str) -> Seen:
    started = monotonic()
    tokens = []
    stream = await client.chat.completions.create(model="m", stream=True, **_body(name))  # type: ignore[call-overload]
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            tokens.append(monotonic())
    return Seen(name, started, tokens)


async def _raw(client: AsyncOpenAI, name: str) -> Seen:
    started = monotonic()
    reads: Reads = []
    response = await client.post(
        "/chat/completions",
        cast_to=httpx2.Response,
        body={"model": "m", "stream": True, **_body(name)},
        stream=True,
        stream_cls=None,
    )
    try:
        async for data in response.aiter_raw():
            reads.append((monotonic(), data))
    finally:
        await response.aclose()
    return Seen(name, started, _tokens(reads))


def _ours(url: str, count: int) -> Report:
    requests = [Request(str(n), "chat", _body(str(n))) for n in range(count)]
    target = Target(url, "m", api_key="none")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run_closed(target, requests, max_concurrency=count)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    return Report(_seen(result), result.health.cpu_seconds, grown * 1024)


def _seen(result: LoadResult) -> list[Seen]:
    seen = []
    for recording in result.recordings:
        assert recording.sent is not None, recording.detail
        reads = [(read.at, read.data) for read in recording.reads]
        seen.append(Seen(recording.request_id, recording.sent, _tokens(reads)))
    return seen


def _ours_in_processes(url: str, count: int, processes: int) -> Report:
    """Our client over several worker processes; CPU and memory are theirs together."""
    requests = tuple(Request(str(n), "chat", _body(str(n))) for n in range(count))
    pool = ProcessWorkerPool()
    try:
        pool.prepare(min(processes, count))
        memory = _peak(pool)
        result = Several(pool, processes).drive(Job(Target(url, "m", api_key="none"), requests, count))
        return Report(_seen(result), result.health.cpu_seconds, _peak(pool) - memory)
    finally:
        pool.close()


def _peak(pool: ProcessWorkerPool) -> int:
    """Peak memory in bytes of all workers together."""
    pages = [Path(f"/proc/{pid}/status").read_text(encoding="ascii") for pid in pool.pids()]
    return sum(int(line.split()[1]) * 1024 for page in pages for line in page.splitlines() if line.startswith("VmHWM"))


def _ours_without_kernel_stamps(url: str, count: int) -> Report:
    """What our client would be on a system whose kernel gives no receive stamps."""

    def none(sock: socket.socket) -> bool:  # noqa: ARG001
        return False

    reactor._wants_stamps = none
    return _ours(url, count)


def _timeout() -> httpx2.Timeout:
    return httpx2.Timeout(120)


READERS: dict[str, Callable[[str, int], Report]] = {
    "bare": lambda url, n: asyncio.run(_bare(url, n)),
    "ours": _ours,
    "ours, no kernel stamps": _ours_without_kernel_stamps,
    "openai-loop-httpx2": lambda url, n: asyncio.run(
        _openai(url, n, _loop, httpx2.AsyncClient(limits=_limits(n), timeout=_timeout()))
    ),
    "openai-raw-httpx2": lambda url, n: asyncio.run(
        _openai(url, n, _raw, httpx2.AsyncClient(limits=_limits(n), timeout=_timeout()))
    ),
    "openai-raw-aiohttp": lambda url, n: asyncio.run(_aiohttp(url, n)),
}
"""Name -> reader. Order is the order of the table."""


async def _aiohttp(url: str, count: int) -> Report:
    return await _openai(url, count, _raw, DefaultAioHttpClient(limits=_limits(count), timeout=_timeout()))


def main() -> None:
    """Run one reader once and print its report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--processes", type=int, help="of our own client")
    parser.add_argument("--core", type=int, nargs="+")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, options.core)
    allow_open_files(options.count)
    if options.processes is not None:
        report = _ours_in_processes(options.url, options.count, options.processes)
    else:
        report = READERS[options.reader](options.url, options.count)
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main()
