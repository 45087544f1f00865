"""The client's own error in a verdict: a large share of the margin makes it invalid, a small one changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.gate.margin import breach_margin, pass_margin
from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_share import ALPHA, judge_level
from phasegate.gate.verdict import Verdict
from phasegate.stats.client_error import MATERIAL, ClientError, OwnError, Watched, joined
from phasegate.stats.level_run import LevelRun
from tests.load_runs import level_run

TTFT = parse_objective("ttft:p95:500ms", source="test")
TPOT = parse_objective("tpot:p95:50ms", source="test")

QUIET = Watched(loop_lag_p99=0.001, read_wait=0.0001, stamped=True, cpu_share=0.1)


def own(ttft: float = 0.0005, span: float = 0.0005, lost: int = 0) -> OwnError:
    return OwnError(16, 32, lost, ttft_p50=ttft, ttft_p99=2 * ttft, tpot_p50=span / 0.07, span_p50=span)


def client(*, watched: Watched = QUIET, **error: float) -> ClientError:
    return ClientError(own(**error), watched)  # type: ignore[arg-type]


def late_by(seconds: float, **changes: Any) -> LevelRun:
    """60 requests whose first token comes so long after the limit."""
    return level_run(16, [0.5 + seconds] * 60, **changes)


def test_a_breach_by_ten_milliseconds_stands_before_a_client_of_half_a_millisecond() -> None:
    kept = judge_level(TTFT, late_by(0.010, client=client()))
    assert kept.verdict is Verdict.SLO_BREACH


def test_the_same_breach_is_invalid_where_the_client_adds_three_milliseconds() -> None:
    """A quarter of ten is two and a half. The line names the figure, the margin and the remedy."""
    kept = judge_level(TTFT, late_by(0.010, client=client(ttft=0.003)))
    assert kept.verdict is Verdict.INVALID_RUN
    assert "the client itself adds 3.00 ms to ttft at 16 at a time" in kept.reason
    assert "more than 25 % of the margin of 10.0 ms" in kept.reason
    assert "--perf-workers" in kept.reason


def test_what_passes_although_the_client_made_it_later_passes() -> None:
    """499 ms of 500 with 3 ms of the client's own: the server took less."""
    kept = judge_level(TTFT, late_by(-0.001, client=client(ttft=0.003)))
    assert kept.verdict is Verdict.PASS


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.SLO_BREACH])
def test_time_per_token_may_be_off_either_way(verdict: Verdict) -> None:
    """Four gaps: an error of 8 ms in the span is 2 ms a token, and the margin is 4 ms."""
    tpot = 0.046 if verdict is Verdict.PASS else 0.054
    small, large = (level_run(16, [0.1] * 60, tpot=tpot, client=client(span=span)) for span in (0.0036, 0.008))
    assert judge_level(TPOT, small).verdict is verdict
    kept = judge_level(TPOT, large)
    assert kept.verdict is Verdict.INVALID_RUN
    assert "moves tpot by 2.00 ms a token" in kept.reason


def test_reads_without_stamps_are_late_by_the_event_loop() -> None:
    unstamped = Watched(loop_lag_p99=0.004, read_wait=0.0, stamped=False, cpu_share=0.1)
    kept = judge_level(TTFT, late_by(0.010, client=ClientError(None, unstamped)))
    assert kept.verdict is Verdict.INVALID_RUN
    assert "its event loop ran 4.00 ms late" in kept.reason


def test_reads_that_waited_long_share_the_next_tokens_moment() -> None:
    kept = judge_level(TTFT, late_by(0.010, client=ClientError(None, replace(QUIET, read_wait=0.005))))
    assert kept.verdict is Verdict.INVALID_RUN
    assert "reads waited 5.00 ms" in kept.reason


def test_failures_that_break_an_objective_alone_are_never_the_clients_doing() -> None:
    run = level_run(16, [0.1] * 30, failures=30, client=client(ttft=10.0))
    assert judge_level(TTFT, run).verdict is Verdict.SLO_BREACH


def test_a_client_that_lost_requests_at_a_known_server_judges_nobody() -> None:
    kept = judge_level(TTFT, late_by(0.5, client=client(lost=2)))
    assert kept.verdict is Verdict.INVALID_RUN
    assert "2 of 32 requests at a server of known timing were lost" in kept.reason


def test_what_is_undecided_stays_so() -> None:
    run = level_run(16, [0.1] * 10, client=client(ttft=10.0))
    assert judge_level(TTFT, run).verdict is Verdict.INCONCLUSIVE


@given(st.lists(st.floats(0.001, 2.0), min_size=59, max_size=150), st.integers(0, 10))
def test_the_margin_is_where_the_verdict_changes(values: list[float], failed: int) -> None:
    """A limit just inside the margin gives the same word, one just outside does not."""
    run = level_run(4, values, failures=failed)
    verdict = judge_level(TTFT, run).verdict
    samples, without = run.samples("ttft"), run.without("ttft")
    if verdict is Verdict.SLO_BREACH:
        margin = breach_margin(TTFT, samples, without, ALPHA)
        inside, outside = (replace(TTFT, limit=TTFT.limit + margin + step) for step in (-1e-9, 1e-9))
        if margin == float("inf"):
            inside = outside = replace(TTFT, limit=1e9)
    elif verdict is Verdict.PASS:
        margin = pass_margin(TTFT, samples, without, ALPHA)
        inside, outside = (replace(TTFT, limit=TTFT.limit - margin + step) for step in (1e-9, -1e-9))
    else:
        return
    assert judge_level(inside, run).verdict is verdict
    if margin != float("inf"):
        assert judge_level(outside, run).verdict is not verdict


def test_rounds_are_joined_by_the_worse_of_each_figure() -> None:
    late = replace(QUIET, read_wait=0.01)
    busy = replace(QUIET, cpu_share=0.8)
    both = joined(ClientError(own(), late), ClientError(None, busy))
    assert both is not None
    assert both.own == own()
    assert both.watched == replace(QUIET, read_wait=0.01, cpu_share=0.8)
    assert joined(None, None) is None


def test_a_quarter_is_material() -> None:
    """The number that the docs state."""
    assert MATERIAL == 0.25
