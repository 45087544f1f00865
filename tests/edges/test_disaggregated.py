"""The page on disaggregated serving: its example runs as it stands there, and its option is heard."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.report.document import from_json
from tests.docs.blocks import ROOT, blocks, commands
from tests.edges.quick_pytest import QuickPytest

pytest.importorskip("prometheus_client")

PAGE = ROOT / "docs" / "howto" / "disaggregated.md"


@pytest.fixture
def lengths(tmp_path: Path) -> Path:
    """A folder with the workload of the example, made short."""
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "prompt-length.yaml").write_text("input_tokens: [64, 512]\noutput_tokens: 8\nrequests: 6\nwarmups: 0\n")
    return folder


def test_the_example_shows_the_hand_off_that_it_plants(quick: QuickPytest, lengths: Path, tmp_path: Path) -> None:
    """80 ms in the summary, in the report, and as a cause in the diagnosis."""
    example = next(line for block in blocks("sh") if block.path == PAGE for line in commands(block))
    program, *words = shlex.split(example)
    assert program == "pytest"
    path = tmp_path / "r.json"
    done = quick.run(*words, "-q", "-k", "rises", "--perf-workloads", lengths, "--perf-report", path)
    assert done.status == 0, done.output
    assert "12 hand-offs of a KV cache, 80.0 ms each" in done.output
    document = from_json(path.read_text(encoding="utf-8"), "r.json")
    (table,) = document.workloads
    assert table.server is not None
    assert table.server.seconds["handoff"] == pytest.approx(0.08, abs=1e-4)
    assert document.server_timings is not None
    assert document.server_timings["prompt-length, mean"]["hand-off"] == pytest.approx(0.08, abs=1e-4)
    assert any("hand-off" in one["cause"] for one in document.diagnosis)


def test_pages_of_workers_are_read_in_the_place_of_the_servers(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    """One that is not there is told in one line, and the server's own page does not stand in for it."""
    with SimulatorEngine(SimulatorConfig(seed=1, speed=5)) as engine:
        done = quick.run(
            "perf_tests/test_regression.py", "-q", "--perf-base-url", engine.base_url, "--perf-workloads", small,
            "--perf-baselines", small / "none", "--missing-baseline", "skip",
            "--perf-metrics-url", engine.address, "--perf-metrics-url", "http://127.0.0.1:9",
            "--perf-report", tmp_path / "r.json",
        )  # fmt: skip
    assert done.status == 0, done.output
    told = " ".join(done.output.split())
    assert "note: the server's own counters were not read: http://127.0.0.1:9/metrics gave connection refused" in told
    assert "small, mean" not in told
    document = from_json((tmp_path / "r.json").read_text(encoding="utf-8"), "r.json")
    assert any("http://127.0.0.1:9/metrics gave connection refused" in one for one in document.validity.remarks)
    assert document.workloads[0].server is None


def test_a_page_that_is_no_address_ends_the_run_before_anything_is_measured(quick: QuickPytest, small: Path) -> None:
    """One line, with value, place and remedy."""
    done = quick.run(
        "perf_tests/test_regression.py", "-q", "--perf-workloads", small, "--perf-metrics-url", "decode-1:8200"
    )
    assert done.status == 4, done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith("ERROR")]
    assert "--perf-metrics-url 'decode-1:8200' is no address of a metrics page; write http://host:port" in line
