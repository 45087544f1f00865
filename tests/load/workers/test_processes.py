"""Worker processes: spawned, told, killed, interrupted; what they leave behind is nothing."""

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import psutil
import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.closed import run_closed
from phasegate.load.workers.driver import Several
from phasegate.load.workers.job import Job
from phasegate.load.workers.processes import ProcessWorkerPool
from phasegate.load.workers.worker_pool import WorkersError
from phasegate.stats.level_run import LevelRun, Round
from phasegate.wire.decoding import decode
from tests.loopback import Answer, Loopback, Served, steady

KEY = "sk-a-key-that-nobody-may-see"


def requests(count: int) -> tuple[Request, ...]:
    return tuple(Request(f"r{number}", "chat", {"messages": [], "user": f"r{number}"}) for number in range(count))


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessWorkerPool]:
    """Two processes for the whole file: starting them is what takes the time."""
    pool = ProcessWorkerPool()
    yield pool
    pool.close()


def living(pool: ProcessWorkerPool) -> list[int]:
    pool.prepare(2)
    found = [pool.pid(number) for number in range(2)]
    return [pid for pid in found if pid is not None]


def test_processes_drive_as_this_one_does_and_stay_for_the_next_load(pool: ProcessWorkerPool) -> None:
    before = living(pool)
    with Loopback(steady(3, first=0.02, gap=0.005)) as server:
        several = Several(pool, 2)
        for users, offsets in ((5, None), (None, tuple(n * 0.01 for n in range(11)))):
            server.log.clear()
            result = several.drive(Job(Target(server.base_url, "m", api_key=KEY), requests(11), users, offsets))
            assert [one.request_id for one in result.recordings] == [f"r{n}" for n in range(11)]
            assert {one.ending for one in result.recordings} == {Ending.EOF}
            assert Counter(served.body["user"] for served in server.log) == Counter(f"r{n}" for n in range(11))
            assert all(f"authorization: Bearer {KEY}".lower() in served.head.lower() for served in server.log)
            assert result.client["worker processes"] == 2
            assert all(one.health is not None and one.health.cpu_seconds > 0 for one in result.workers)
    assert living(pool) == before


def test_the_key_is_in_no_command_line_and_no_environment_of_a_worker(pool: ProcessWorkerPool) -> None:
    """It goes through the pipe."""
    with Loopback(steady(1, first=0, gap=0)) as server:
        job = Job(Target(server.base_url, "m", api_key=KEY, headers={"x-secret": KEY}), requests(4), 2)
        Several(pool, 2).drive(job)
    assert KEY not in repr(job)
    for pid in living(pool):
        process = psutil.Process(pid)
        assert KEY not in " ".join(process.cmdline())
        assert KEY not in " ".join(process.environ().values())


def test_a_killed_worker_loses_its_unreported_requests_and_is_replaced(pool: ProcessWorkerPool) -> None:
    """kill -9 once it has reported something, while it reads answers that would not end; the other one is unhurt."""
    first, second = living(pool)

    def script(served: Served) -> Answer:
        number = int(served.body["user"][1:])
        endless = number >= 20 and number % 2
        return steady(3000, first=0.01, gap=0.02) if endless else steady(2, first=0.01, gap=0.01)

    def kill(place: int, _recording: Recording) -> None:
        if place % 2:
            with contextlib.suppress(ProcessLookupError):
                os.kill(second, signal.SIGKILL)

    with Loopback(script) as server:
        result = Several(pool, 2).drive(Job(Target(server.base_url, "m"), requests(60), 4), on_done=kill)
    endings = Counter(one.ending for one in result.recordings)
    assert len(result.recordings) == 60
    assert set(endings) == {Ending.EOF, Ending.WORKER_LOST}
    lost = [place for place, one in enumerate(result.recordings) if one.ending is Ending.WORKER_LOST]
    assert all(place % 4 % 2 == 1 for place in lost)
    assert 0 < len(lost) < 30  # what it had reported before is kept
    assert result.workers[1].lost == "killed by signal 9"
    assert result.workers[1].unreported == len(lost)
    again = living(pool)
    assert again[0] == first
    assert again[1] != second


def test_ctrl_c_records_what_was_given_up_and_ends_the_load_as_partial(pool: ProcessWorkerPool) -> None:
    """As a terminal sends it: to every process of the group."""
    pids = living(pool)
    seen: list[int] = []

    def group(place: int, _recording: Recording) -> None:
        seen.append(place)
        if len(seen) == 1:
            for pid in (*pids, os.getpid()):
                os.kill(pid, signal.SIGINT)

    def script(served: Served) -> Answer:
        return steady(1, first=0, gap=0) if served.body["user"] == "r0" else steady(3000, first=0.01, gap=0.01)

    before = signal.getsignal(signal.SIGINT)
    with Loopback(script) as server:
        result = Several(pool, 2).drive(Job(Target(server.base_url, "m"), requests(40), 4), on_done=group)
    assert result.interrupted
    assert result.partial
    endings = Counter(one.ending for one in result.recordings)
    assert endings[Ending.EOF] == 1
    assert 3 <= endings[Ending.CANCELLED] <= 5
    assert len(result.recordings) + len(result.unsent) == 40
    assert all(worker.lost is None for worker in result.workers)
    assert signal.getsignal(signal.SIGINT) is before
    assert living(pool) == pids


def test_closing_leaves_no_process_and_no_open_file() -> None:
    own = psutil.Process()
    pool = ProcessWorkerPool()
    before = own.num_fds()
    pool.prepare(1)
    pid = pool.pid(0)
    assert pid is not None
    child = psutil.Process(pid)
    pool.close()
    assert not child.is_running()
    pool.close()
    # The tracker of multiprocessing's own resources has one pipe, and lives as long as this process.
    assert own.num_fds() <= before + 2


@pytest.mark.slow
def test_two_processes_measure_the_percentiles_that_one_does(pool: ProcessWorkerPool) -> None:
    """The same requests to the same server, whose first tokens take from 50 ms to 1.2 s: equal but for noise."""

    def script(served: Served) -> Answer:
        return steady(4, first=0.05 + 0.05 * int(served.body["user"][1:]), gap=0.02)

    with Loopback(script) as server:
        target = Target(server.base_url, "m")
        one = run_closed(target, requests(24), max_concurrency=6)
        two = Several(pool, 2).drive(Job(target, requests(24), 6))
    runs = [LevelRun(6, (Round(tuple(decode(each) for each in result.recordings)),)) for result in (one, two)]
    for metric, slack in (("ttft", 0.1), ("tpot", 0.02)):
        for percent in (50, 95):
            single, several = (run.percentile(metric, percent) for run in runs)
            assert single is not None
            assert several is not None
            assert several.value == pytest.approx(single.value, abs=slack)
    assert runs[1].failures() == {}


SCRIPT = """
import os, sys
from phasegate.load.workers.processes import ProcessWorkerPool

{guard}
    crew = ProcessWorkerPool()
    crew.prepare(1)
    print(crew.pid(0), flush=True)
    {then}
"""


def run_script(tmp_path: Path, guard: str, then: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "measure.py"
    script.write_text(SCRIPT.format(guard=guard, then=then))
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_workers_end_when_their_conductor_is_killed(tmp_path: Path) -> None:
    """Nothing of it has a chance to clean up."""
    done = run_script(tmp_path, "if __name__ == '__main__':", "os.kill(os.getpid(), 9)")
    assert done.returncode == -signal.SIGKILL
    worker = int(done.stdout.split()[0])
    until = monotonic() + 20
    while psutil.pid_exists(worker) and monotonic() < until:
        sleep(0.05)
    assert not psutil.pid_exists(worker)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_what_it_lacks(tmp_path: Path) -> None:
    """Each worker would run the script again; spawn refuses that, and one line says the remedy."""
    done = run_script(tmp_path, "if True:", "crew.close()")
    assert done.returncode == 1
    assert "under if __name__ == '__main__'" in done.stderr


def test_a_worker_that_is_never_up_is_an_error_and_no_lost_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phasegate.load.workers.processes.BORN_WITHIN", 0.0)
    pool = ProcessWorkerPool()
    with pytest.raises(WorkersError, match="worker process 1 was not up within 0 s; use fewer"):
        pool.prepare(1)
    assert pool.pid(0) is None
