"""Beside other plugins that people have: shuffled, timed, asynchronous, parallel."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.cli import main
from tests.edges.quick_pytest import QuickPytest

WORKLOAD = "input_tokens: [64, 256]\noutput_tokens: [8, 16]\nrequests: 3\nwarmups: 0\n"

MEASURING = ("-q", "--perf-engine", "simulator", "--perf-engine-config", "speed=4", "-p", "no:cacheprovider")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Somebody else's repository with the starter kit, a small workload and an ordinary test."""
    assert main(["init", str(tmp_path)]) == 0
    for path in (tmp_path / "fixtures" / "workloads").glob("*.yaml"):
        path.unlink()
    (tmp_path / "fixtures" / "workloads" / "small.yaml").write_text(WORKLOAD, encoding="utf-8")
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n", encoding="utf-8")
    return tmp_path


def test_in_any_order_the_same_is_measured(repository: Path, quick: QuickPytest) -> None:
    """pytest-randomly shuffles items and seeds `random`; two seeds, and each measures every cell once."""
    pytest.importorskip("pytest_randomly")
    orders = []
    for seed in ("1", "2"):
        done = quick.run("perf_tests/test_rows.py", *MEASURING, "-vv", f"--randomly-seed={seed}", cwd=repository)
        assert done.status == 0, done.output
        assert f"random seed: {seed}" in done.output or f"--randomly-seed={seed}" in done.output
        orders.append([line.split()[0] for line in done.output.splitlines() if "::test_row[" in line])
    assert len(orders[0]) == 8
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_timeout_for_items_leaves_a_run_alone_that_keeps_it(repository: Path, quick: QuickPytest) -> None:
    pytest.importorskip("pytest_timeout")
    done = quick.run("perf_tests/test_rows.py", *MEASURING, "--timeout=60", cwd=repository)
    assert done.status == 0, done.output


def test_a_timeout_in_the_middle_of_measuring_ends_the_item_and_stops_the_engine(
    repository: Path, quick: QuickPytest
) -> None:
    """A server that never answers in time: no regression, and no process left that holds the run up."""
    pytest.importorskip("pytest_timeout")
    slow = [*MEASURING[:4], "speed=0.01", *MEASURING[5:]]
    done = quick.run("perf_tests/test_rows.py", *slow, "-x", "--timeout=2", cwd=repository)
    assert done.status == 15, done.output
    assert "the time limit of pytest-timeout (2 s) ended the measurement" in done.output


def test_asynchronous_tests_run_beside_it(repository: Path, quick: QuickPytest) -> None:
    pytest.importorskip("pytest_asyncio")
    (repository / "test_async.py").write_text(
        "import asyncio, pytest\n\n\n@pytest.mark.asyncio\nasync def test_waits():\n    await asyncio.sleep(0)\n",
        encoding="utf-8",
    )
    done = quick.run("perf_tests/test_rows.py", "test_async.py", *MEASURING, cwd=repository)
    assert done.status == 0, done.output
    assert "9 passed" in done.output
