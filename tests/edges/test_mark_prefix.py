"""``--perf-mark-prefix`` from the command line: what it does, what is said without it, and where it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edges.quick_pytest import Done, QuickPytest
from tests.engines.replay.marked_cache import MarkedCache
from tests.loopback import Loopback

CACHE = "perf_tests/test_prefix_cache.py"


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workloads of the law, short."""
    folder = tmp_path_factory.mktemp("workloads")
    plan = "input_tokens: 1200\noutput_tokens: 4\nrequests: 7\nwarmups: 1\n"
    (folder / "prefix-cache.yaml").write_text(f"{plan}prefix: repeated\n")
    (folder / "shared-prefix.yaml").write_text(f"{plan}prefix: shared\nshared_tokens: 1100\n")
    return folder


def run(quick: QuickPytest, workloads: Path, *more: str) -> Done:
    """The laws of the prefix cache on the server that caches only what is marked."""
    with Loopback(MarkedCache(least=1024)) as server:
        return quick.run(
            CACHE, "-rs", "--perf-base-url", server.base_url, "--perf-model", "m", "--perf-engine", "anthropic",
            "--perf-endpoint", "messages", "--perf-workloads", workloads, *more,
        )  # fmt: skip


@pytest.mark.slow
def test_with_the_option_both_laws_hold(quick: QuickPytest, workloads: Path) -> None:
    """And the summary says that beginnings were marked."""
    done = run(quick, workloads, "--perf-mark-prefix")
    assert done.status == 0, done.output
    assert "2 passed" in done.output
    assert "shared beginnings are marked for caching" in done.output


def test_without_it_the_law_informs_and_does_not_fail(quick: QuickPytest, workloads: Path) -> None:
    """It says what to run; the diagnosis names the mark as the first lever."""
    done = run(quick, workloads, "-k", "suffix", "--perf-requests", "3")
    assert done.status == 0, done.output
    assert "1 advisory" in done.output
    assert "caches only what a request marks" in done.output
    assert "run with --perf-mark-prefix" in done.output
    assert "mark the shared beginning of each prompt (cache_control)" in done.output
    assert "marked for caching" not in done.output


def test_an_engine_without_marks_is_refused_in_one_line(quick: QuickPytest, workloads: Path) -> None:
    """Before anything is measured, with the remedy."""
    done = quick.run(CACHE, "--perf-engine", "simulator", "--perf-workloads", workloads, "--perf-mark-prefix")
    assert done.status == 15, done.output
    assert "--perf-mark-prefix: the profile simulator" in done.output
    assert "knows no mark for the chat endpoint; leave the option out" in done.output
    assert "Traceback" not in done.output


def test_shared_blocks_of_a_trace_are_refused_as_they_cannot_be_marked(quick: QuickPytest, tmp_path: Path) -> None:
    """One line, nothing started."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 600, "output_length": 4, "hash_ids": [1, 2]}\n')
    done = quick.run("perf_tests/test_arrivals.py", "--perf-trace", trace, "--perf-mark-prefix")
    assert done.status == 4, done.output
    assert "--perf-mark-prefix marks what workloads share, not the blocks" in done.output
