"""Whole measuring runs, from the command line to the files they leave, on servers that are well and that are not."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import Done, QuickPytest
from tests.laws.bench import WORKLOADS

KEY = "sk-right-7f3a91"

REQUESTS = 9
"""More than the laws need: on a busy machine some answers arrive in one piece, and those enter no sample."""

SURE = "rises or faster or test_row or regression"
"""Claims with so large an effect that no busy neighbour hides it, and what needs no claim."""


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workloads that the claims ask for, small, in a folder."""
    folder = tmp_path_factory.mktemp("workloads")
    for name, content in WORKLOADS.items():
        (folder / f"{name}.yaml").write_text(f"{content}requests: {REQUESTS}\nwarmups: 1\n")
    return folder


@dataclass(frozen=True, slots=True)
class Whole:
    """A run on a healthy server with a key, and the folder with everything it wrote."""

    done: Done
    folder: Path

    def rows(self) -> dict[str, list[float]]:
        """Row of pytest-benchmark -> its samples in seconds."""
        return {row["name"]: row["stats"]["data"] for row in self.benchmark()["benchmarks"]}

    def benchmark(self) -> dict[str, Any]:
        """The file of ``--benchmark-json``."""
        return dict(json.loads((self.folder / "benchmark.json").read_text()))


@pytest.fixture(scope="module")
def healthy(quick: QuickPytest, workloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """One run for all tests that only look at it."""
    folder = tmp_path_factory.mktemp("healthy")
    with SimulatorEngine(SimulatorConfig(seed=7, speed=8.0), api_key=KEY) as engine:
        done = quick.run(
            "perf_tests", "-k", SURE, "-v", "--perf-base-url", engine.base_url, "--perf-workloads", workloads,
            "--perf-baselines", folder / "baselines", "--perf-save-sessions", folder / "sessions",
            "--perf-sessions", "1", "--benchmark-json", folder / "benchmark.json", "--junitxml", folder / "junit.xml",
            OPENAI_API_KEY=KEY,
        )  # fmt: skip
    return Whole(done, folder)


def test_a_healthy_server_ends_green(healthy: Whole) -> None:
    """Exit status 0, the tables, the laws, the cache's saving."""
    assert healthy.done.status == 0, healthy.done.output
    for words in (
        "prompt-length (output 32 tokens, ",
        "TTFT rises with prompt length",
        "median of cached tokens",
        "phasegate-simulator",
    ):
        assert words in " ".join(healthy.done.output.split())
    assert " FAILED" not in healthy.done.output


def test_the_samples_in_the_benchmark_file_are_those_that_were_measured(healthy: Whole) -> None:
    """Every row against the session that the gate saved of the same run, sample by sample (to its microseconds)."""
    (session,) = sorted((healthy.folder / "sessions").rglob("*.json"))
    saved = {
        f"{row['extra_info']['workload']}-{row['extra_info']['metric']}": row["stats"]["data"]
        for row in json.loads(session.read_text())["benchmarks"]
    }
    rows = healthy.rows()
    assert len(rows) == 2 * (3 + 4 + 3 + 3)
    for name, samples in rows.items():
        label = name.removeprefix("test_row[").removesuffix("]")
        assert samples == pytest.approx(saved[label], rel=0, abs=1e-6), name
        assert 1 <= len(samples) <= REQUESTS


def test_a_row_says_what_it_is(healthy: Whole) -> None:
    """Metric, phase, workload and digest travel with the samples, and the group names the phase."""
    for row in healthy.benchmark()["benchmarks"]:
        info = row["extra_info"]
        assert row["group"] == f"{info['metric']} ({info['phase']})"
        assert info["phase"] == {"ttft": "prefill", "tpot": "decode"}[info["metric"]]
        assert info["workload_digest"]
        assert info["failed"] == 0


def test_the_comparison_of_pytest_benchmark_reads_the_file(healthy: Whole) -> None:
    """``pytest-benchmark compare`` on its own."""
    command = [sys.executable, "-m", "pytest_benchmark", "compare", str(healthy.folder / "benchmark.json")]
    done = subprocess.run(command, cwd=healthy.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "prompt-length[in=1024,out=32]-ttft" in done.stdout


def test_the_key_is_in_no_output_and_no_file(healthy: Whole) -> None:
    """Neither in what was printed nor in anything that was written, baselines and sessions included."""
    assert KEY not in healthy.done.output
    files = [path for path in healthy.folder.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert [path for path in files if KEY in path.read_text(errors="replace")] == []


def test_a_server_without_a_prefix_cache_fails_by_name(quick: QuickPytest, workloads: Path, tmp_path: Path) -> None:
    """Exit status 1; the summary and the JUnit file say that caching is off."""
    done = quick.run(
        "perf_tests/test_prefix_cache.py", "--perf-workloads", workloads, "--junitxml", tmp_path / "junit.xml",
        "--perf-engine", "simulator", "--perf-engine-config", "speed=8 cache=off",
    )  # fmt: skip
    assert done.status == 1, done.output
    words = "prefix caching is off or was not hit: switch it on, or deselect this test"
    assert words in " ".join(done.output.split())
    failures = list(ElementTree.parse(tmp_path / "junit.xml").iter("failure"))
    assert len(failures) == 2
    assert all(words in str(one.get("message")) for one in failures)


def test_too_few_requests_are_inconclusive_and_not_green(quick: QuickPytest, workloads: Path) -> None:
    """An outcome and an exit status of its own, and what to do."""
    done = quick.run(
        "perf_tests/test_prefill.py", "--perf-workloads", workloads, "--perf-requests", "2",
        "--perf-engine", "simulator", "--perf-engine-config", "speed=8",
    )  # fmt: skip
    assert done.status == 13, done.output
    last = done.output.rstrip().splitlines()[-1]
    assert "2 inconclusive" in last
    assert "passed" not in last
    assert "measure 3 more repetitions" in " ".join(done.output.split())
