"""Every fault of a server is counted under its own name, and none makes a latency look better than it is.

One simulator, one run of load for each fault: every second request of it is hit. What the same requests would have
taken without the fault is known from the simulator's own plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Channel, Expected, TokenEvent
from phasegate.engines.simulator.config import Batching, SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.faults import Fault, FaultRule
from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_share import attained
from phasegate.load.closed import run_closed
from phasegate.load.health import no_garbage_collection
from phasegate.report.load_tables import level_notes
from phasegate.stats.level_run import LevelRun, Round, ended_well, value_of
from phasegate.stats.percentile import nearest_rank
from phasegate.wire.openai_stream import decode
from tests.timelines import timeline

FAILS: Mapping[Fault, str] = {
    Fault.HTTP_429: "http_429",
    Fault.HTTP_500: "http_500",
    Fault.HTTP_503: "http_503",
    Fault.NO_ANSWER: "no_answer",
    Fault.RESET_BEFORE_HEADERS: "connection_reset",
    Fault.RESET_MID_STREAM: "connection_reset",
    Fault.HALF_CLOSE: "connection_lost",
    Fault.CUT_CHUNK: "connection_lost",
    Fault.TRUNCATED: "truncated",
    Fault.EARLY_DONE: "truncated",
    Fault.GARBAGE: "truncated",
    Fault.SILENT_STALL: "idle_timeout",
    Fault.SLOW_BODY: "total_timeout",
    Fault.ERROR_IN_STREAM: "stream_error",
    Fault.NOT_HTTP: "protocol",
    Fault.NOT_STREAMED: "not_streaming",
    Fault.EMPTY_ANSWER: "empty",
    Fault.EARLY_EOS: "short_answer",
}
"""Fault -> the name of the failure."""

REMARKED: Mapping[Fault, tuple[str, ...]] = {
    Fault.MALFORMED_EVENT: ("malformed_event",),
    Fault.MISSING_USAGE: ("usage_missing",),
    Fault.WRONG_USAGE: ("osl_mismatch",),
    Fault.BUFFERED: ("buffered",),
    Fault.SLOW_LORIS: ("buffered",),
    Fault.NO_DONE: ("no_done",),
}
"""Fault of an answer that is whole all the same -> the remark, or one of several."""

HARMLESS = (Fault.ROLE_EARLY,)
"""Neither: a role is no token, and when it comes bears on nothing."""

ORDER = (*FAILS, *REMARKED, *HARMLESS)
EACH = 12
HIT = EACH // 2
TOKENS = 12
STEP = 0.005
OBJECTIVES = [parse_objective(text, source="test") for text in ("ttft:p95:5s", "tpot:p95:1s", "e2el:p95:5s")]
JITTER = 0.8
"""Share of its planned value that a TPOT may come down to because a first token was late; other latencies cannot be
shorter than planned at all."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs by fault, the run without any, and what one request takes by the simulator's plan."""

    runs: Mapping[Fault, LevelRun]
    clean: LevelRun
    plan: Mapping[str, float]


def rules() -> tuple[FaultRule, ...]:
    """The first run is clean; in the others every second request is hit."""
    return tuple(
        FaultRule(
            fault, at=tuple(range(EACH * number + 1, EACH * (number + 1) + 1, 2)), after_tokens=4,
            seconds=0.001,
        )
        for number, fault in enumerate(ORDER, start=1)
    )  # fmt: skip


@pytest.fixture(scope="module")
def measured() -> Measured:
    config = SimulatorConfig(
        seed=5, batching=Batching.ALONE, step_seconds=STEP, prefill_tokens_per_second=1e6, faults=rules()
    )
    with SimulatorEngine(config) as engine:
        target = Target(engine.base_url, engine.model, timeout=0.8, idle_timeout=0.3)
        with no_garbage_collection():
            clean, *others = [one_run(target) for _ in range(len(ORDER) + 1)]
        whole = engine.truths()[:EACH]
    first = [truth.chunks[0].planned - truth.arrived for truth in whole]
    span = [truth.chunks[-1].planned - truth.chunks[0].planned for truth in whole]
    plan = {
        "ttft": min(first),
        "tpot": min(span) / (TOKENS - 1),
        "e2el": min(a + b for a, b in zip(first, span, strict=True)),
    }
    return Measured(dict(zip(ORDER, others, strict=True)), clean, plan)


def one_run(target: Target) -> LevelRun:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": TOKENS}
    expected = Expected(max_tokens=TOKENS, output_tokens=TOKENS)
    requests = [Request(f"r{number}", "chat", body, expected) for number in range(EACH)]
    result = run_closed(target, requests, max_concurrency=EACH)
    return LevelRun(EACH, (Round(tuple(map(decode, result.recordings))),))


def test_no_fault_is_forgotten_here() -> None:
    assert set(ORDER) == set(Fault)


def test_the_run_without_faults_is_clean(measured: Measured) -> None:
    assert not measured.clean.failures()
    assert not set(measured.clean.remarks()) - {"burst"}
    assert attained(OBJECTIVES, measured.clean) == EACH


@pytest.mark.parametrize("fault", FAILS, ids=lambda fault: fault.value)
def test_a_failure_is_counted_under_its_own_name(fault: Fault, measured: Measured) -> None:
    """In the counts, in the summary, and as a miss of every objective."""
    run = measured.runs[fault]
    assert dict(run.failures()) == {FAILS[fault]: HIT}
    notes = "\n".join(level_notes([run]))
    assert f"failed: {HIT} x {FAILS[fault]}" in notes
    assert f"{HIT} of {EACH} requests count as infinite in TTFT" in notes
    assert attained(OBJECTIVES, run) == HIT
    for metric in ("ttft", "tpot", "e2el"):
        p95 = run.percentile(metric, 95)
        assert p95 is not None
        assert (p95.value, p95.failed) == (math.inf, HIT)


@pytest.mark.parametrize("fault", REMARKED, ids=lambda fault: fault.value)
def test_what_is_whole_but_odd_is_counted_as_a_remark(fault: Fault, measured: Measured) -> None:
    run = measured.runs[fault]
    assert not run.failures()
    counts = run.remarks()
    assert sum(counts[name] for name in REMARKED[fault]) >= HIT, counts
    assert any(f"x {name}" in "\n".join(level_notes([run])) for name in REMARKED[fault])


@pytest.mark.parametrize("fault", ORDER, ids=lambda fault: fault.value)
def test_no_fault_makes_anything_look_better(fault: Fault, measured: Measured) -> None:
    """Percentiles against the plan of the same requests without the fault, attainment and goodput against the run."""
    run = measured.runs[fault]
    for metric, planned in measured.plan.items():
        for percent in (50, 95):
            found = run.percentile(metric, percent)
            assert found is not None
            assert found.value >= planned * (JITTER if metric == "tpot" else 1.0), (metric, percent)
    for objective in OBJECTIVES:
        assert attained([objective], run) <= attained([objective], measured.clean)
    good = attained(OBJECTIVES, run)
    longest = measured.plan["e2el"]
    assert run.rate_of(good) <= good / longest


@pytest.mark.parametrize(("fault", "metric"), [(Fault.BUFFERED, "tpot"), (Fault.EARLY_EOS, "e2el")])
def test_a_plain_reading_would_have_been_deceived(fault: Fault, metric: str, measured: Measured) -> None:
    """The same answers, taken as they stand: the check above can fail."""
    row = metric_named(metric)
    values = [row.measure(line) for line in measured.runs[fault].timelines if line.status == "ok"]
    plain = [value for value in values if not isinstance(value, Undefined)]
    assert nearest_rank(plain, 40) < JITTER * measured.plan[metric]


def test_throughput_counts_no_token_twice(measured: Measured) -> None:
    """Half as many tokens again are claimed by every second answer."""
    tokens = measured.runs[Fault.WRONG_USAGE].rounds[0].output_tokens
    assert tokens == EACH * TOKENS


def test_half_a_count_is_a_wrong_count_and_no_short_answer() -> None:
    """The answer ended at its limit and as many tokens came; one that really stopped is short all the same."""
    forced = replace(timeline(), expected=Expected(max_tokens=10, output_tokens=10), output_tokens=5)
    short = replace(forced, flags=("osl_mismatch",))
    wrong = replace(forced, flags=("osl_mismatch", "usage_inconsistent"))
    assert (ended_well(short), ended_well(wrong)) == (False, True)
    assert value_of(wrong, "ttft") is not None
    assert value_of(wrong, "tpot") is None


@pytest.mark.parametrize(("held", "paced"), [(1, 0.01), (5, 0.01), (9, 0.01), (10, None)])
def test_tokens_that_were_held_back_do_not_speed_up_the_rest(held: int, paced: float | None) -> None:
    """The first so many of ten tokens come in one read, the others every 10 ms: still 10 ms a token."""
    moments = [100.1] * held + [100.1 + 0.01 * n for n in range(1, 11 - held)]
    events = tuple(TokenEvent(at, Channel.CONTENT, "w") for at in moments)
    found = value_of(replace(timeline(), tokens=events, output_tokens=10), "tpot")
    assert found == (None if paced is None else pytest.approx(paced))
