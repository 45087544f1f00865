"""The search for the highest load: it finds a known break in few levels, says how sure it is, and why it broke."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.gate.break_cause import Cause, cause_of
from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_search import judge_limits, limits, next_level, next_rate
from phasegate.gate.verdict import Verdict
from phasegate.stats.level_run import LevelRun
from tests.load_runs import level_run, with_server_prefill

TTFT = parse_objective("ttft:p95:500ms", source="test")
TPOT = parse_objective("tpot:p95:50ms", source="test")
E2EL = parse_objective("e2el:p95:1s", source="test")


def searched(breaks_from: int, at_most: int = 64) -> list[LevelRun]:
    """The levels that the search visits on a server whose TTFT breaks from that level on."""
    runs: list[LevelRun] = []
    while (level := next_level([TTFT], runs, at_most=at_most)) is not None:
        assert level not in [run.level for run in runs], "no level is measured twice"
        runs.append(level_run(level, [0.9 if level >= breaks_from else 0.1] * 60))
    return runs


@pytest.mark.parametrize("breaks_from", [1, 2, 3, 7, 16, 33, 64])
def test_the_search_ends_on_both_sides_of_the_break(breaks_from: int) -> None:
    runs = searched(breaks_from)
    (found,) = limits([TTFT], runs, at_most=64)
    assert found.broken == breaks_from
    assert found.kept == (breaks_from - 1 or None)
    assert len(runs) <= 12
    assert f"broken from {breaks_from} at a time" in found.text


def test_the_search_never_exceeds_its_bound_and_says_so() -> None:
    runs = searched(breaks_from=1000, at_most=20)
    assert max(run.level for run in runs) == 20
    (found,) = limits([TTFT], runs, at_most=20)
    assert (found.kept, found.broken, found.cause) == (20, None, None)
    assert "no break up to 20" in found.text


def test_levels_that_prove_nothing_stand_between_kept_and_broken() -> None:
    few = [level_run(1, [0.1] * 60), level_run(2, [0.1] * 20), level_run(4, [0.9] * 60)]
    (found,) = limits([TTFT], few, at_most=64)
    assert (found.kept, found.unproven, found.broken) == (1, (2,), 4)
    assert "unproven at 2" in found.text


def test_the_objective_that_breaks_first_stands_first() -> None:
    runs = [
        level_run(1, [0.1] * 60),
        level_run(4, [0.1] * 60, tpot=0.08),
        level_run(8, [0.9] * 60, tpot=0.08),
    ]
    first, second = limits([TTFT, TPOT], runs, at_most=8)
    assert (first.objective, first.broken) == (TPOT, 4)
    assert (second.objective, second.broken) == (TTFT, 8)


def test_rates_are_searched_by_factors_down_to_a_known_width() -> None:
    runs: list[LevelRun] = []
    while (rate := next_rate([TTFT], runs, first=1.0, at_most=100.0)) is not None:
        runs.append(level_run(rate, [0.9 if rate > 11 else 0.1] * 60, by_rate=True))
    (found,) = limits([TTFT], runs, at_most=100.0)
    assert found.kept is not None
    assert found.broken is not None
    assert found.kept <= 11 < found.broken <= 1.25 * found.kept
    assert "requests/s" in found.text


def test_a_level_that_the_client_could_not_load_names_the_client() -> None:
    runs = [level_run(1, [0.1] * 60), level_run(2, [0.9] * 60, missed="the event loop ran late")]
    (found,) = limits([TTFT], runs, at_most=64)
    assert found.broken is None
    assert found.cause is not None
    assert found.cause.cause is Cause.CLIENT


def test_a_search_passes_only_where_every_objective_is_proven_kept_somewhere() -> None:
    good, bad = level_run(1, [0.1] * 60), level_run(1, [0.9] * 60)
    assert judge_limits(limits([TTFT], [good], at_most=1))[0] is Verdict.PASS
    word, reason = judge_limits(limits([TTFT, TPOT], [bad], at_most=1))
    assert word is Verdict.SLO_BREACH
    assert "no level proven to keep it, broken from 1 at a time; cause: prefill" in reason
    assert judge_limits(limits([TTFT], [level_run(1, [0.1] * 20)], at_most=1))[0] is Verdict.INCONCLUSIVE


SINGLE = level_run(1, [0.1] * 20)


def test_a_first_token_that_waits_while_steps_stay_fast_waits_in_a_queue() -> None:
    found = cause_of(TTFT, SINGLE, level_run(16, [0.9] * 20))
    assert found.cause is Cause.QUEUEING
    assert "89 % of TTFT is waiting" in found.reason


def test_a_prefill_that_was_slow_all_along_is_no_queue() -> None:
    assert cause_of(TTFT, level_run(1, [0.8] * 20), level_run(16, [0.9] * 20)).cause is Cause.PREFILL


def test_a_first_token_that_slows_down_as_decode_does_is_prefill_sharing_its_steps() -> None:
    assert cause_of(TTFT, SINGLE, level_run(16, [0.9] * 20, tpot=0.09)).cause is Cause.PREFILL


def test_the_servers_own_prefill_time_decides_where_it_is_told() -> None:
    """The same client-side numbers, once with a short and once with a long prefill on the server."""
    broken = level_run(16, [0.9] * 20, tpot=0.09)
    assert cause_of(TTFT, SINGLE, with_server_prefill(broken, 0.12)).cause is Cause.QUEUEING
    assert cause_of(TTFT, SINGLE, with_server_prefill(broken, 0.85)).cause is Cause.PREFILL


def test_the_requests_that_missed_are_asked_and_not_the_median_one() -> None:
    """A quarter of the requests is slow; the median request is as quick as alone."""
    quick, slow = level_run(4, [0.1] * 30), level_run(4, [0.1] * 10, tpot=0.08)
    broken = replace(quick, rounds=quick.rounds + slow.rounds)
    found = cause_of(TPOT, SINGLE, broken)
    assert found.reason.startswith("of the 10 of 40 requests that missed it, TPOT is 80.0 ms")
    assert cause_of(TPOT, SINGLE, slow).reason.startswith("TPOT is 80.0 ms")


def test_slow_tokens_are_decode() -> None:
    assert cause_of(TPOT, SINGLE, level_run(16, [0.1] * 20, tpot=0.08)).cause is Cause.DECODE


def test_a_whole_request_is_late_for_the_phase_that_grew() -> None:
    assert cause_of(E2EL, SINGLE, level_run(16, [1.5] * 20)).cause is Cause.QUEUEING
    assert cause_of(E2EL, SINGLE, level_run(16, [0.1] * 20, tpot=0.4)).cause is Cause.DECODE


def test_requests_that_fail_are_named_before_any_phase() -> None:
    found = cause_of(TTFT, SINGLE, level_run(16, [0.1] * 10, failures=10))
    assert found.cause is Cause.FAILURES
    assert "10 x http_500" in found.reason


def test_a_break_that_no_level_proves_is_proven_higher_up() -> None:
    """From 3 on just over a twentieth of the requests is late, which 60 of them do not prove; from 12 on all are."""

    def measured(level: int) -> LevelRun:
        late = 0 if level < 3 else 5 if level < 12 else 60
        return level_run(level, [0.9] * late + [0.1] * (60 - late))

    runs: list[LevelRun] = []
    while (level := next_level([TTFT], runs, at_most=64)) is not None:
        runs.append(measured(level))
    (found,) = limits([TTFT], runs, at_most=64)
    assert [run.level for run in runs] == [1, 2, 4, 3, 8, 16]
    assert (found.kept, found.unproven, found.broken) == (2, (3, 4, 8), 16)


def test_a_rate_that_proves_no_break_is_followed_by_higher_ones() -> None:
    """The same for arrivals, up to the bound."""
    runs: list[LevelRun] = []
    while (rate := next_rate([TTFT], runs, first=4.0, at_most=20.0)) is not None:
        runs.append(level_run(rate, [0.9] * (60 if rate > 16 else 5 if rate > 7 else 0) + [0.1] * 55, by_rate=True))
    (found,) = limits([TTFT], runs, at_most=20.0)
    assert max(run.level for run in runs) == 20.0
    assert found.broken is not None
    assert found.broken > 16


def test_a_client_that_cannot_offer_a_level_is_not_asked_for_twice_as_much() -> None:
    runs = [
        level_run(1, [0.1] * 60),
        level_run(2, [0.9] * 5 + [0.1] * 55, missed="the event loop ran late"),
    ]
    assert next_level([TTFT], runs, at_most=64) is None
