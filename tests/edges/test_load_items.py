"""The items of load as a build sees them: words, exit statuses, and the section of the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest

SPEED = ("--perf-engine", "simulator", "--perf-engine-config", "speed=20 max_sequences=2")

LEVELS = ("--perf-concurrency", "1", "8")

SLOWER = ("--perf-engine-config", "speed=8 max_sequences=2")
"""Where tokens have to come one by one, so that TPOT is that of the simulator and no request is unfit."""


def judged(quick: QuickPytest, *options: str) -> Done:
    """One run of the items of objectives on the simulator at 1 and 8 users."""
    return quick.run("perf_tests/test_slo.py", "-k", "objective_is_kept", "-rs", *SPEED, *LEVELS, *options)


def test_without_an_objective_load_is_measured_and_not_judged(quick: QuickPytest) -> None:
    done = judged(quick)
    assert done.status == 0, done.output
    assert "2 no_slo" in done.output
    assert "users  sent" in done.output
    assert "batching 1 -> 8: throughput x" in done.output


@pytest.mark.alone
def test_a_broken_objective_fails_the_build_with_phase_and_cause(quick: QuickPytest) -> None:
    """Two places for eight users: most first tokens wait for somebody else's whole answer, many times longer than
    this machine's client can be late."""
    done = judged(quick, *SLOWER, "--perf-slo", "ttft:p50:20ms", "tpot:p95:1s")
    assert done.status == 1, done.output
    said = " ".join(done.output.split())
    assert "SLO_BREACH: ttft (prefill): 8 at a time:" in said
    assert "cause: queueing" in said
    assert "kept all" in said


@pytest.mark.alone
def test_a_percentile_with_too_few_requests_is_inconclusive_and_says_how_many_it_needs(quick: QuickPytest) -> None:
    done = judged(quick, *SLOWER, "--perf-slo", "tpot:p99:1s", "--perf-load-requests", "10")
    assert done.status == 13, done.output
    assert "2 inconclusive" in done.output
    assert "p99 needs 299 requests (--perf-load-requests 299)" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--perf-concurrency", "0"), "--perf-concurrency: '0' is not a whole number of at least 1"),
        (("--perf-slo", "ttft:500ms"), "--perf-slo: 'ttft:500ms' is not an objective"),
        (("--perf-load-requests", "0"), "--perf-load-requests is 0; it must be at least 1"),
        (("--perf-max-stall", "2"), "--perf-max-stall: '2' is not a duration"),
        (("--perf-batching-factor", "-1"), "--perf-batching-factor is -1"),
        (("--perf-budget", "5"), "--perf-budget: '5' is not a duration"),
        (("--perf-request-rate", "5"), "--perf-request-rate 5 is judged by perf_tests/test_arrivals.py, which was not"),
    ],
)
def test_a_wrong_option_ends_the_run_with_one_line(quick: QuickPytest, options: tuple[str, ...], said: str) -> None:
    done = quick.run("perf_tests/test_slo.py", *SPEED, *options)
    assert done.status == 4, done.output
    assert said in done.output
    assert "Traceback" not in done.output


def test_a_budget_is_planned_kept_and_told(quick: QuickPytest, small: Path) -> None:
    """Three requests a cell are below what is planned at least, so only the time left decides."""
    done = quick.run("perf_tests/test_rows.py", *SPEED, "--perf-workloads", small, "--perf-budget", "1h")
    assert done.status == 0, done.output
    assert "left of the budget: requests as in the workload files: about" in " ".join(done.output.split())
