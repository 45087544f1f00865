"""Workers on a Ray cluster of two nodes, both on this machine: the same numbers as one process, and a death noticed.

Left out where Ray is not installed. Starting a cluster takes some ten seconds, so the file has one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.closed import run_closed
from phasegate.load.workers.driver import Several
from phasegate.load.workers.job import Job
from phasegate.load.workers.ray_workers import RayWorkerPool
from phasegate.load.workers.worker_pool import WorkersError
from phasegate.stats.level_run import LevelRun, Round
from phasegate.stats.percentile import nearest_rank
from phasegate.wire.openai_stream import decode
from tests.loopback import Answer, Loopback, Served, steady

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ray: Any = pytest.importorskip("ray")


def requests(count: int) -> tuple[Request, ...]:
    return tuple(Request(f"r{number}", "chat", {"messages": [], "user": f"r{number}"}) for number in range(count))


@pytest.fixture(scope="module")
def pool() -> Iterator[RayWorkerPool]:
    """A crew on two nodes with two CPUs each."""
    cluster = pytest.importorskip("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
    pool = RayWorkerPool()
    yield pool
    pool.close()
    ray.shutdown()
    cluster.shutdown()


def nodes_of(pool: RayWorkerPool, count: int) -> set[str]:
    pool.prepare(count)
    asked = [
        pool._members[number].actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id())
        for number in range(count)
    ]
    return set(ray.get(asked))


def script(served: Served) -> Answer:
    """A first token whose delay is the request's own: percentiles are then known, whoever measures them."""
    return steady(4, first=0.05 + 0.01 * int(served.body["user"][1:]), gap=0.02)


def test_a_cluster_gives_the_percentiles_of_one_process(pool: RayWorkerPool) -> None:
    """The same requests to the same server: equal within what two runs of one process differ by."""
    with Loopback(script) as server:
        target = Target(server.base_url, "m")
        one = run_closed(target, requests(32), max_concurrency=8)
        many = Several(pool).drive(Job(target, requests(32), 8))
    assert [recording.request_id for recording in many.recordings] == [f"r{n}" for n in range(32)]
    assert len(many.workers) == 4
    runs = [LevelRun(8, (Round(tuple(decode(each) for each in result.recordings)),)) for result in (one, many)]
    for metric, slack in (("ttft", 0.03), ("tpot", 0.01)):
        for percent in (50, 95):
            single, cluster = (run.percentile(metric, percent) for run in runs)
            assert single is not None
            assert cluster is not None
            assert cluster.value == pytest.approx(single.value, abs=slack)
    # And exactly those of its own recordings, put together by hand.
    by_hand = sorted(each.reads[0].at - each.sent for each in many.recordings if each.sent is not None)
    p95 = runs[1].percentile("ttft", 95)
    assert p95 is not None
    assert p95.value == nearest_rank(by_hand, 95)


def test_workers_are_spread_over_the_nodes(pool: RayWorkerPool) -> None:
    assert len(nodes_of(pool, 4)) == 2


def test_a_schedule_keeps_its_due_moments_on_a_cluster(pool: RayWorkerPool) -> None:
    offsets = tuple(number * 0.02 for number in range(20))
    with Loopback(steady(2, first=0.02, gap=0.01)) as server:
        result = Several(pool).drive(Job(Target(server.base_url, "m"), requests(20), None, offsets))
    # One machine, one clock: nothing is moved.
    assert [one.due for one in result.recordings] == [result.started + offset for offset in offsets]
    assert {one.ending for one in result.recordings} == {Ending.EOF}


def test_a_killed_actor_loses_its_unreported_requests_and_is_replaced(pool: RayWorkerPool) -> None:
    """Those of the other workers are unhurt, and nothing is dropped."""
    pool.prepare(4)

    def endless(served: Served) -> Answer:
        number = int(served.body["user"][1:])
        return steady(3000, first=0.01, gap=0.05) if number % 4 == 2 and number > 8 else steady(2, first=0.01, gap=0.01)

    def kill(place: int, _recording: Recording) -> None:
        if place % 4 == 2:
            pool.kill(2)

    with Loopback(endless) as server:
        result = Several(pool, 4).drive(Job(Target(server.base_url, "m"), requests(40), 4), on_done=kill)
        endings = Counter(one.ending for one in result.recordings)
        assert sum(endings.values()) == 40
        assert endings[Ending.EOF] >= 30
        assert endings[Ending.WORKER_LOST] == 40 - endings[Ending.EOF] > 0
        assert result.workers[2].lost is not None
        assert "actor died" in result.workers[2].lost
        again = Several(pool, 4).drive(Job(Target(server.base_url, "m"), requests(8), 4))
    assert {one.ending for one in again.recordings} == {Ending.EOF}


def test_asked_to_stop_the_cluster_stops(pool: RayWorkerPool) -> None:
    seen: list[int] = []
    with Loopback(steady(2, first=0.02, gap=0.01)) as server:
        result = Several(pool, 2).drive(
            Job(Target(server.base_url, "m"), requests(1000), 2),
            on_done=lambda place, _: seen.append(place),
            stop=lambda: bool(seen),
        )
    assert result.partial
    assert {one.ending for one in result.recordings} == {Ending.EOF}


def test_the_clock_of_a_worker_elsewhere_is_measured(pool: RayWorkerPool) -> None:
    """Here it is our own, so what is measured is the error: far below any start lead."""
    pool.prepare(1)
    actor = pool._members[0].actor
    elsewhere = pool._offset_of(actor, pool._members[0].greeted.__class__("far", "another boot", "1"))
    assert abs(elsewhere) < 0.05
    assert pool.offset(0) == 0.0


def test_more_workers_than_the_cluster_has_room_for_are_refused(
    pool: RayWorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phasegate.load.workers.ray_workers.BORN_WITHIN", 3.0)
    with pytest.raises(WorkersError, match=r"Ray worker 5 of 5 did not come up .* see ray status for free CPUs"):
        pool.prepare(5)
