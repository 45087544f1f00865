"""Two thousand streams at once, from one process and from several: no error, no lost request, no leaked socket."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import psutil
import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.load.workers.driver import Driver, OneProcess, Several
from phasegate.load.workers.job import Job
from phasegate.load.workers.processes import ProcessWorkerPool
from phasegate.wire.decoding import decode

pytestmark = pytest.mark.slow

STREAMS, TOKENS = 2000, 6

ROOT = Path(__file__).parents[3]


@pytest.fixture
def port() -> Iterator[int]:
    """A server in a process of its own, which keeps every stream open until all are there."""
    words = ["-m", "benchmarks._server", "--first", "6", "--gap", "0.3", "--tokens", str(TOKENS)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdout is not None
    yield int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()


def log_of(port: int) -> Counter[str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/log")
    entries = json.loads(connection.getresponse().read())
    connection.close()
    return Counter(entry["name"] for entry in entries)


def sockets_of(pids: list[int]) -> int:
    return sum(len(psutil.Process(pid).net_connections(kind="tcp")) for pid in pids)


def check(driver: Driver, port: int, pids: list[int]) -> None:
    before = sockets_of(pids)
    requests = tuple(Request(f"r{n}", "chat", {"messages": [], "user": f"r{n}"}) for n in range(STREAMS))
    result = driver.drive(Job(Target(f"http://127.0.0.1:{port}/v1", "m"), requests, STREAMS))
    lines = [decode(one) for one in result.recordings]
    assert Counter(line.status for line in lines) == {"ok": STREAMS}
    assert {len(line.tokens) for line in lines} == {TOKENS}
    assert [line.request_id for line in lines] == [request.request_id for request in requests]
    assert log_of(port) == Counter(request.request_id for request in requests)
    assert result.peak_in_flight == STREAMS
    assert not result.partial
    assert sockets_of(pids) == before


def test_two_thousand_streams_from_one_process(port: int) -> None:
    check(OneProcess(), port, [psutil.Process().pid])


def test_two_thousand_streams_from_two_processes(port: int) -> None:
    """Which stay, so that sockets they leaked would be there."""
    pool = ProcessWorkerPool()
    try:
        pool.prepare(2)
        check(Several(pool, 2), port, [psutil.Process().pid, *pool.pids()])
    finally:
        pool.close()
