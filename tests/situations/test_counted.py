"""What a dry run says is what the servers then see, request for request; and the report counts the same (A2, A5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.quick_pytest import QuickPytest

STEADY = "step_seconds=0.005 prefill_tokens_per_second=20000"
"""Tokens come one by one also on a busy machine."""


@pytest.fixture
def servers() -> Iterator[tuple[SimulatorEngine, SimulatorEngine]]:
    """Two simulators whose logs tell what they were really asked."""
    with SimulatorEngine.from_words(STEADY) as one, SimulatorEngine.from_words(STEADY) as other:
        yield one, other


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    """Two small workloads, one of which reuses prompts."""
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "plain.yaml").write_text("input_tokens: [32, 64]\noutput_tokens: 6\nrequests: 6\nwarmups: 1\n")
    again = "input_tokens: 64\noutput_tokens: 3\nrequests: 5\nwarmups: 2\nprefix: repeated\n"
    (folder / "again.yaml").write_text(again)
    return folder


def told(output: str) -> tuple[int, int]:
    """Requests and tokens of a dry run's last row."""
    row = re.search(r"^in all +([\d,]+) +([\d,]+) +([\d,]+)$", output, re.MULTILINE)
    assert row is not None, output
    requests, prompt, answer = (int(one.replace(",", "")) for one in row.groups())
    return requests, prompt + answer


def logged(*servers: SimulatorEngine) -> tuple[int, int]:
    """Requests and tokens in the servers' own logs."""
    truths = [one for server in servers for one in server.truths()]
    return len(truths), sum(one.prompt_tokens + one.output_tokens for one in truths)


SITUATIONS = {
    "plain": (("perf_tests/test_rows.py",), ()),
    "the gate without a baseline": (("perf_tests/test_regression.py",), ()),
    "sessions": (("perf_tests/test_regression.py",), ("--perf-sessions", "3")),
    "paired": (("perf_tests/test_regression.py",), ("--perf-reference-url", "OTHER", "--perf-blocks", "5")),
    "paired, and rows besides": (
        ("perf_tests/test_regression.py", "perf_tests/test_rows.py"),
        ("--perf-reference-url", "OTHER", "--perf-blocks", "5", "--perf-requests", "20"),
    ),
    "sentinel": (("perf_tests/test_regression.py",), ("--perf-sentinel-url", "OTHER", "--perf-sessions", "2")),
    "levels": (
        ("perf_tests/test_slo.py",),
        ("--perf-slo", "ttft:p50:30s", "--perf-concurrency", "1", "3", "--perf-load-requests", "10"),
    ),
    "collisions": (("perf_tests/test_interference.py",), ()),
    "arrivals": (("perf_tests/test_arrivals.py",), ("--perf-request-rate", "50", "--perf-num-prompts", "7")),
    "update": (("perf_tests/test_regression.py",), ("--update-baselines", "--perf-sessions", "2")),
    "update with a sentinel": (
        ("perf_tests/test_regression.py",),
        ("--update-baselines", "--perf-sessions", "2", "--perf-sentinel-url", "OTHER"),
    ),
    "a budget of time": (("perf_tests/test_rows.py",), ("--perf-budget", "10m")),
}


QUICK = ("plain", "paired")

ALL = [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in SITUATIONS]


@pytest.mark.parametrize("what", ALL)
def test_a_dry_run_tells_what_the_servers_then_see(
    what: str,
    servers: tuple[SimulatorEngine, SimulatorEngine],
    workloads: Path,
    tmp_path: Path,
    quick: QuickPytest,
) -> None:
    """A2: it said 28 requests of a paired run, and the servers counted 132."""
    one, other = servers
    paths, options = SITUATIONS[what]
    words = [other.base_url if word == "OTHER" else word for word in options]
    report = tmp_path / "report.json"
    common: tuple[str | Path, ...] = (
        *paths, "-q", "--perf-base-url", one.base_url, "--perf-workloads", workloads,
        "--perf-baselines", tmp_path / "baselines", "--perf-report", report, *words,
    )  # fmt: skip
    dry = quick.run(*common, "--perf-dry-run")
    assert dry.status == 0, dry.output
    assert logged(one, other) == (0, 0), "a dry run sends nothing"
    run = quick.run(*common)
    requests, tokens = logged(one, other)
    assert told(dry.output)[0] == requests, dry.output + run.output
    assert tokens <= told(dry.output)[1] <= tokens * 1.2 + 500, dry.output + run.output
    assert json.loads(report.read_text())["validity"]["requests"] == requests, "the report counts every request"
    assert re.search(rf"^sent +{requests:,} requests, 0 failed", run.output, re.MULTILINE), run.output
