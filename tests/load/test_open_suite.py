"""The asked load inside a whole pytest run: judged by objectives, refused where options contradict, never silent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest

pytestmark = pytest.mark.slow

ITEM = ("perf_tests/test_arrivals.py", "--perf-engine", "simulator", "--perf-engine-config", "speed=20")
RATE = ("--perf-request-rate", "50", "--perf-num-prompts", "60", "--perf-num-warmups", "1")


@pytest.fixture(scope="module")
def quick() -> Iterator[QuickPytest]:
    with QuickPytest() as running:
        yield running


def run(quick: QuickPytest, *arguments: str | Path) -> Done:
    # Slower than any hiccup of this machine, or faster than any server: no other objective is used here.
    return quick.run(*ITEM, *arguments, COLUMNS="200")


def test_an_objective_is_kept_and_another_broken_at_the_asked_rate(quick: QuickPytest) -> None:
    """60 requests without a miss prove a p95; a nanosecond is kept by nobody. The level joins the summary's table."""
    slower = ("--perf-engine-config", "speed=5")  # an answer takes many times what the client itself could add
    done = run(quick, *slower, *RATE, "--perf-slo", "ttft:p95:50s", "e2el:p95:1us")
    assert done.status != 0
    assert "1 failed, 1 passed" in done.output
    assert "SLO_BREACH: open loop, Poisson arrivals, 50 requests/s; sent 50" in done.output
    assert "50/s" in done.output


def test_a_trace_is_judged_with_its_own_lengths(quick: QuickPytest, tmp_path: Path) -> None:
    """Where a cap keeps its requests back the run is invalid and nothing is said of the server."""
    rows = "".join(f"{n},{60 + n},{8 if n else 400}\n" for n in range(30))
    path = tmp_path / "trace.csv"
    path.write_text("timestamp,input_length,output_length\n" + rows)
    done = run(quick, "--perf-trace", path, "--perf-max-concurrency", "1", "--perf-slo", "e2el:p50:50s")
    assert "1 invalid_run" in done.output
    assert "replay of 30 requests" in done.output
    assert "raise --perf-max-concurrency" in done.output
    assert " passed" not in done.output


def test_without_an_objective_the_load_is_measured_and_not_judged(quick: QuickPytest) -> None:
    """Which is no pass."""
    assert "1 no_slo" in run(quick, *RATE).output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--perf-request-rate", "fast"), "--perf-request-rate 'fast'"),
        (("--perf-max-concurrency", "4"), "--perf-max-concurrency 4 belongs to --perf-request-rate or --perf-trace"),
    ],
)
def test_wrong_options_end_the_run_before_anything_is_started(
    quick: QuickPytest, arguments: tuple[str, ...], said: str
) -> None:
    """In one line, with pytest's status for wrong usage."""
    done = run(quick, *arguments)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert said in done.output
