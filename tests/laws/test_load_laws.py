"""Load on a server of known timing: breaks, batching and stalls are found where they were planted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from phasegate.core.load_plan import plan_levels
from phasegate.gate.break_cause import Cause
from phasegate.gate.slo import parse_objective
from phasegate.measure.load_runner import LoadRunner
from phasegate.measure.session_runner import MeasurementError
from phasegate.stats import laws
from phasegate.stats.level_run import token_rates
from phasegate.stats.outcome import LawResult, Outcome
from tests.load_runs import load_lab_on, small

pytestmark = pytest.mark.slow

USERS = small("concurrency", 64, 8)
STREAMS = small("streams", 32, 40, requests=2)
LONG = small("long-prompt", 512, 2, requests=5)


TRIES = 4
"""Searches of which one must have been offered by a client that kept up."""


def batching(load: LoadRunner) -> LawResult:
    runs = load.measure_levels(USERS, plan_levels((1, 4), 10))
    return laws.amortises(token_rates(runs[1]), token_rates(runs[4]), factor=1.5)


def stall_against_prefill(load: LoadRunner) -> LawResult:
    """Whether the stall is surely below half the prefill; more collisions follow while that is open."""
    for requests in (5, 10, 20):
        collisions = load.collide(STREAMS, small("long-prompt", 512, 2, requests=requests))
        assert all(one.hit for one in collisions)
        alone = float(np.median([one.alone for one in collisions]))
        result = laws.stall_bounded([one.stall for one in collisions], bound=0.5 * alone)
        if result.outcome is not Outcome.INCONCLUSIVE:
            break
    return result


@pytest.fixture(scope="module")
def healthy() -> Iterator[LoadRunner]:
    """A server that batches, runs four requests at a time, and reads prompts in small pieces."""
    with load_lab_on(max_sequences=4, step_token_budget=64) as load:
        yield load


def test_continuous_batching_amortises_decode(healthy: LoadRunner) -> None:
    result = batching(healthy)
    assert result.outcome is Outcome.PASS, result.reason


def test_one_request_after_another_does_not() -> None:
    with load_lab_on(max_sequences=1) as load:
        result = batching(load)
        assert result.outcome is Outcome.FAIL, result.reason


def test_every_request_of_every_round_is_kept_with_its_level(healthy: LoadRunner) -> None:
    batching(healthy)
    run = healthy.levels[4]
    assert (run.sent, len(run.rounds), run.missed, run.failures().total()) == (40, 5, None, 0)
    prompts = {line.request_id for line in run.timelines}
    assert len(prompts) == 40
    assert all(not line.cached_tokens or line.cached_tokens < 16 for line in run.timelines), "every prompt is new"
    median, p95 = run.percentile("ttft", 50), run.percentile("ttft", 95)
    assert median is not None
    assert p95 is not None
    assert 0 < median.low <= median.value <= p95.value


def test_prefill_in_pieces_keeps_the_stall_below_the_prefill(healthy: LoadRunner) -> None:
    result = stall_against_prefill(healthy)
    assert result.outcome is Outcome.PASS, result.reason


def test_prefill_in_one_piece_stalls_the_streams_for_all_of_it() -> None:
    with load_lab_on(chunked_prefill=False) as load:
        result = stall_against_prefill(load)
        assert result.outcome is Outcome.FAIL, result.reason


def test_a_long_prompt_that_waits_for_the_streams_to_end_is_no_collision() -> None:
    """Two places for two streams: the long prompt is read only after they are done."""
    with load_lab_on(max_sequences=2) as load, pytest.raises(MeasurementError, match="longer answers or fewer"):
        load.collide(STREAMS, LONG)


def test_a_queue_is_found_where_it_begins_and_told_from_slow_phases() -> None:
    """Four places: the fifth user waits for somebody else's whole answer, which takes about 35 ms."""
    with load_lab_on(max_sequences=4, prefill_tokens_per_second=64_000) as load:
        objective = parse_objective("ttft:p50:14ms", source="test")
        (found,) = load.find_limit(small("concurrency", 64, 16), [objective], requests=24, at_most=16)
    assert found.broken is not None, found.text
    assert 5 <= found.broken <= 10, found.text
    assert found.cause is not None
    assert found.cause.cause is Cause.QUEUEING, found.cause.reason


def test_slow_steps_are_told_from_a_queue() -> None:
    """Places for all, but every stream makes the step longer by 2 ms: TPOT breaks, and decode is why."""
    with load_lab_on(sequence_seconds=0.010, prefill_tokens_per_second=64_000) as load:
        objective = parse_objective("tpot:p50:8ms", source="test")
        (found,) = load.find_limit(small("concurrency", 64, 16), [objective], requests=16, at_most=16)
    assert found.broken is not None, found.text
    assert 3 <= found.broken <= 8, found.text
    assert found.cause is not None
    assert found.cause.cause is Cause.DECODE, found.cause.reason


def test_the_highest_rate_lies_below_what_all_places_together_can_serve() -> None:
    """One place that takes 23 ms for a request serves 43 a second. At twice that rate the n-th request waits for n
    halves of an answer, so that of 40 requests all but the first few miss: surely more than half of them. A rate that
    this machine's other work kept the client from offering proves nothing, and the search is made again."""
    users, objective = small("concurrency", 64, 24), parse_objective("ttft:p50:30ms", source="test")
    for _ in range(TRIES):
        with load_lab_on(max_sequences=1, speed=10.0) as load:
            load.measure_levels(users, plan_levels((1,), 5))
            served = load.levels[1].request_rate
            (found,) = load.find_rate(users, [objective], requests=40)
        if all(run.missed is None and not run.notes for run in load.rates.values()):
            break
    assert found.by_rate
    assert found.broken is not None, found.text
    assert (found.kept or 0) < 1.3 * served, found.text
    assert found.cause is not None
    assert found.cause.cause is Cause.QUEUEING, found.cause.reason
