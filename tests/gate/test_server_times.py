"""The server's counters as times of a kind of request: means where they are that kind's own, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from phasegate.core.session import Session
from phasegate.core.workload import Workload, parse_workload, plan_blocks
from phasegate.diagnose import Ask, diagnose
from phasegate.diagnose.from_runs import observations_of
from phasegate.diagnose.from_sessions import observations_of_sessions
from phasegate.stats.counters import ServerCounts
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.sessions import measurement, session
from tests.timelines import timeline


def counts(requests: int, queue: float, prefill: float, workers: int = 1) -> ServerCounts:
    """What vLLM's histograms grow by, from means."""
    grown = {"queue": queue * requests, "prefill": prefill * requests}
    return ServerCounts(grown, {"queue": requests, "prefill": requests}, workers=workers)


def workload(lengths: Sequence[int] = (512,), prefix: str = "unique") -> Workload:
    """So many prompt lengths, four requests each."""
    text = f"input_tokens: {list(lengths)}\noutput_tokens: 5\nrequests: 4\nwarmups: 0\nprefix: {prefix}\n"
    return parse_workload(text, "chat.yaml")


def run(ttft: float, server: ServerCounts | None, plan: Workload | None = None, late: float = 0.0) -> WorkloadRun:
    """A workload whose requests all take as long, but the last, which is later by some seconds."""
    plan = plan or workload()
    planned = plan_blocks(plan, np.random.default_rng(1))
    lines = [timeline(ttft=ttft) for _ in planned[:-1]] + [timeline(ttft=ttft + late)]
    return WorkloadRun(plan, tuple(map(Measured, planned, lines)), server=server)


def first_ask(one: WorkloadRun) -> Ask:
    """The first kind of request of a run."""
    return observations_of([one]).asks[0]


def test_means_over_one_prompt_length_are_taken_as_the_kinds_own() -> None:
    """Queue and prefill; so a longer queue of the default vLLM is no slower prefill."""
    before, now = run(0.15, counts(4, 0.0, 0.1)), run(0.40, counts(4, 0.25, 0.1))
    assert first_ask(now).server_queue == pytest.approx(0.25)
    assert first_ask(now).server_prefill == pytest.approx(0.1)
    told = diagnose(observations_of([now]), observations_of([before]))
    assert [one.rule for one in told.found] == ["queue-longer"]


def test_a_mean_over_several_prompt_lengths_is_no_lengths_prefill() -> None:
    """The wait does not depend on the prompt, so that is taken."""
    asks = observations_of([run(0.4, counts(8, 0.25, 0.1), workload((128, 512)))]).asks
    assert [one.server_prefill for one in asks] == [None, None]
    assert [one.server_queue for one in asks] == pytest.approx([0.25, 0.25])


def test_a_mean_over_cold_and_cached_prompts_is_neithers_prefill() -> None:
    """Of one length, but not alike."""
    plan = workload(prefix="repeated")
    told = first_ask(run(0.4, counts(4 * len(plan.cells), 0.25, 0.1), plan))
    assert told.server_prefill is None
    assert told.server_queue == pytest.approx(0.25)


def test_requests_of_others_are_told_and_their_prefill_is_not_taken() -> None:
    """60 counted, 4 sent: the mean wait is everybody's, the mean prefill nobody's."""
    told = first_ask(run(0.4, counts(60, 0.25, 0.1)))
    assert (told.others, told.server_prefill) == (56, None)
    assert told.server_queue == pytest.approx(0.25)
    assert first_ask(run(0.4, counts(4, 0.25, 0.1))).others is None


@pytest.mark.parametrize("requests", [3, 0])
def test_a_server_that_counted_fewer_requests_tells_nothing(requests: int) -> None:
    """One of several replicas, or another server."""
    told = first_ask(run(0.4, counts(requests, 0.25, 0.1)))
    assert (told.server_prefill, told.server_queue, told.others) == (None, None, None)


def test_times_longer_than_the_client_waited_are_not_taken() -> None:
    """They are in another unit, or of something else."""
    told = first_ask(run(0.2, counts(4, 0.25, 0.1)))
    assert (told.server_prefill, told.server_queue) == (None, None)


def test_what_one_slow_request_added_to_the_mean_the_middle_one_did_not_wait() -> None:
    """One of four waited 1 s: the mean queue is 250 ms, the median request's none."""
    told = first_ask(run(0.15, counts(4, 0.25, 0.1), late=1.0))
    assert told.server_queue == pytest.approx(0.0)
    assert told.server_prefill == pytest.approx(0.1)


def test_several_workers_may_count_a_request_more_than_once() -> None:
    """The mean is then over what was sent, and nobody else is accused."""
    told = first_ask(run(0.4, replace(counts(8, 0.1, 0.05), workers=2)))
    assert told.others is None
    assert told.server_queue == pytest.approx(0.2)


def stored(ttft: float, queue: float, *, requests: int = 4) -> Session:
    """A session of a server that counted."""
    told = {"chat": {"counted": counts(requests, queue, 0.1).facts()}}
    label = "chat[in=512,out=5]"
    rows = (measurement(label, "ttft", [ttft] * 4), measurement(label, "tpot", [0.01] * 4))
    return session(1, *rows, server={"engine": "vllm", "observed": told})


def test_stored_sessions_keep_what_the_server_told() -> None:
    """So a comparison of sessions tells a queue from a slower prefill as well."""
    before, now = (observations_of_sessions([stored(0.15 + queue, queue)]) for queue in (0.0, 0.25))
    assert now.asks[0].server_queue == pytest.approx(0.25)
    assert [one.rule for one in diagnose(now, before).found] == ["queue-longer"]


def test_parts_that_came_with_the_answers_are_taken_before_counters() -> None:
    """They are of the requests themselves."""
    label = "chat[in=512,out=5]"
    told = {"chat": {"first_token": {label: {"queue": 0.2, "prefill": 0.15}}, "counted": counts(4, 0.0, 0.1).facts()}}
    one = session(1, measurement(label, "ttft", [0.4] * 4), server={"observed": told})
    ask = observations_of_sessions([one]).asks[0]
    assert (ask.server_queue, ask.server_prefill) == (0.2, 0.15)


@pytest.mark.parametrize("observed", [None, 3, {"chat": []}, {"chat": {"counted": {"grown": {"queue": "long"}}}}])
def test_a_damaged_account_of_the_server_is_as_if_there_were_none(observed: object) -> None:
    """No traceback, no figure."""
    one = session(1, measurement("chat[in=512,out=5]", "ttft", [0.4] * 4), server={"observed": observed})
    ask = observations_of_sessions([one]).asks[0]
    assert (ask.server_queue, ask.server_prefill) == (None, None)
