"""Workers inside a whole pytest run: levels and arrivals sent by two processes, wrong options said before anything."""

from collections.abc import Iterator

import pytest

from tests.edges.quick_pytest import Done, QuickPytest

pytestmark = pytest.mark.slow

ENGINE = ("--perf-engine", "simulator", "--perf-engine-config", "speed=20")


@pytest.fixture(scope="module")
def quick() -> Iterator[QuickPytest]:
    with QuickPytest() as running:
        yield running


def run(quick: QuickPytest, *arguments: str) -> Done:
    return quick.run(*arguments, *ENGINE, COLUMNS="200")


def test_levels_are_sent_by_the_workers_asked_for(quick: QuickPytest) -> None:
    """One user is one worker's, four are shared; all are judged as ever."""
    done = run(
        quick, "perf_tests/test_slo.py", "--perf-concurrency", "1", "4", "--perf-slo", "e2el:p50:50s",
        "--perf-load-requests", "20", "--perf-workers", "2",
    )  # fmt: skip
    assert "2 passed" in done.output
    assert "1 at a time: sent by 1 worker on 1 machine" in done.output
    assert "4 at a time: sent by 2 workers on 1 machine" in done.output
    assert done.output.count("sent by 2 workers") == 1


def test_arrivals_are_sent_by_them_too(quick: QuickPytest) -> None:
    done = run(
        quick, "perf_tests/test_arrivals.py", "--perf-request-rate", "50", "--perf-num-prompts", "60",
        "--perf-slo", "ttft:p95:50s", "--perf-workers", "2",
    )  # fmt: skip
    assert "1 passed" in done.output
    assert "sent by 2 workers on 1 machine" in done.output


@pytest.mark.parametrize(
    ("value", "said"),
    [("none", "--perf-workers 'none' is not possible"), ("ray://", "--perf-workers 'ray://' names no host")],
)
def test_a_wrong_number_ends_the_run_before_anything_is_started(quick: QuickPytest, value: str, said: str) -> None:
    done = run(quick, "perf_tests/test_slo.py", "--perf-workers", value)
    assert done.status == 4
    assert said in done.output
    assert "Traceback" not in done.output
