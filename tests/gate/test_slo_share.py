"""An objective under load is decided by the exact interval of the share that misses it, and by nothing less."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_share import attained, judge_level, requests_to_prove
from phasegate.gate.verdict import Verdict
from phasegate.stats.level_run import Round
from tests.load_runs import level_run

P95 = parse_objective("ttft:p95:500ms", source="test")


@pytest.mark.parametrize(("text", "needed"), [("ttft:p50:1s", 5), ("ttft:p95:1s", 59), ("ttft:p99:1s", 299)])
def test_so_many_requests_without_a_miss_prove_a_percentile(text: str, needed: int) -> None:
    objective = parse_objective(text, source="test")
    assert requests_to_prove(objective) == needed
    assert judge_level(objective, level_run(4, [0.1] * needed)).verdict is Verdict.PASS
    assert judge_level(objective, level_run(4, [0.1] * (needed - 1))).verdict is Verdict.INCONCLUSIVE


def test_a_level_whose_share_of_misses_is_surely_above_the_promise_breaks_it() -> None:
    kept = judge_level(P95, level_run(16, [0.1] * 30 + [0.9] * 10))
    assert kept.verdict is Verdict.SLO_BREACH
    assert "10 of 40 requests missed" in kept.reason


def test_a_few_misses_among_few_requests_decide_nothing_and_tell_how_many_would() -> None:
    kept = judge_level(P95, level_run(4, [0.1] * 19 + [0.9]))
    assert kept.verdict is Verdict.INCONCLUSIVE
    assert kept.needed is not None
    assert f"--perf-load-requests {kept.needed}" in kept.reason
    more = level_run(4, [0.1] * (kept.needed - 1) + [0.9])
    assert judge_level(P95, more).verdict is Verdict.PASS


def test_a_failed_request_is_a_miss_however_fast_the_others_were() -> None:
    assert judge_level(P95, level_run(4, [0.1] * 30, failures=10)).verdict is Verdict.SLO_BREACH


def test_a_load_that_was_not_reached_proves_nothing_not_even_a_break() -> None:
    late = level_run(16, [0.9] * 40, missed="only 3 requests were in flight")
    kept = judge_level(P95, late)
    assert kept.verdict is Verdict.INVALID_RUN
    assert "only 3 requests were in flight" in kept.reason


def test_counts_that_are_disproved_prove_no_pace_and_do_not_touch_first_tokens() -> None:
    """Else every request would miss, and the server would be called slow for a wrong count."""
    told = level_run(4, [0.1] * 60)
    lines = tuple(replace(line, flags=("usage_inconsistent",)) for line in told.timelines)
    lying = replace(told, rounds=(Round(lines),))
    tpot = parse_objective("tpot:p95:20ms", source="test")
    assert judge_level(tpot, told).verdict is Verdict.PASS
    kept = judge_level(tpot, lying)
    assert kept.verdict is Verdict.INVALID_RUN
    assert "cannot be believed" in kept.reason
    assert judge_level(P95, lying).verdict is Verdict.PASS


def test_goodput_counts_requests_that_meet_every_objective() -> None:
    tpot = parse_objective("tpot:p95:20ms", source="test")
    run = level_run(4, [0.1, 0.4, 0.9], failures=2)
    assert attained((P95, tpot), run) == 2
    slow = level_run(4, [0.1, 0.4, 0.9], tpot=0.05)
    assert attained((P95, tpot), slow) == 0
