"""The gate as a build sees it: real pytest runs against the simulator, their words and their exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from phasegate.engines.simulator.engine import SimulatorEngine
from tests.edges.desk import SPEED, Desk
from tests.edges.quick_pytest import ROOT, QuickPytest


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, quick: QuickPytest) -> Desk:
    """A desk with eight accepted sessions of a healthy server."""
    desk = Desk(tmp_path_factory.mktemp("desk"), quick)
    done = desk.run("", "--update-baselines", "--perf-sessions", "8")
    assert done.status == 0, done.output
    assert len(desk.sessions()) == 8
    assert "stored 8 sessions" in done.output
    return desk


def test_without_a_baseline_a_desk_is_told_loudly_and_ci_fails(tmp_path: Path, quick: QuickPytest) -> None:
    empty = Desk(tmp_path, quick)
    at_desk = empty.run()
    assert at_desk.status == 0, at_desk.output
    assert "3 no_baseline" in at_desk.output
    assert "--update-baselines" in at_desk.output
    in_ci = empty.run(ci=True)
    assert in_ci.status == 14, in_ci.output
    assert any(message.startswith("NO_BASELINE") for message in empty.failures())


@pytest.mark.alone
def test_an_unchanged_server_passes_with_every_row_compared(desk: Desk) -> None:
    done = desk.run("", ci=True)
    assert done.status == 0, done.output
    assert "PASS" in done.output


@pytest.mark.alone
@pytest.mark.parametrize(
    ("settings", "metric", "phase"),
    [("decode_factor=2.5", "tpot", "decode"), ("prefill_factor=2.5", "ttft", "prefill")],
)
def test_a_slower_phase_fails_the_build_by_name(desk: Desk, settings: str, metric: str, phase: str) -> None:
    done = desk.run(settings, ci=True)
    assert done.status == 1, done.output
    assert f"levers for {phase}" in " ".join(done.output.split())
    assert {message.split(":")[0] for message in desk.failures()} == {"REGRESSION"}
    assert f" {metric}: " in desk.failures()[0]
    assert len(desk.sessions()) == 8, "a regressed session must not enter the baseline"


@pytest.mark.alone
def test_a_reference_measured_beside_it_needs_no_baseline(tmp_path: Path, quick: QuickPytest) -> None:
    slower = Desk(tmp_path, quick).run(
        "decode_factor=2.5", "--perf-reference-config", SPEED, "--perf-blocks", "5", ci=True
    )
    assert slower.status == 1, slower.output
    said = " ".join(slower.output.split())
    assert "levers for decode" in said
    diagnosis = said.partition(" diagnosis -")[2]
    assert "decode" in diagnosis, "a run that only gates is explained, too, by its blocks"


def test_one_candidate_session_is_inconclusive(desk: Desk) -> None:
    done = desk.run("", "--perf-sessions", "1", ci=True)
    assert done.status == 13, done.output
    assert "inconclusive" in done.output


def test_a_damaged_baseline_is_named_and_left_as_it_is(desk: Desk, tmp_path: Path, quick: QuickPytest) -> None:
    hurt = Desk(tmp_path, quick)
    target = hurt.baselines / desk.sessions()[0].parent.name
    target.mkdir(parents=True)
    damaged = target / desk.sessions()[0].name
    damaged.write_text(desk.sessions()[0].read_text(encoding="utf-8")[:-40], encoding="utf-8")
    before = damaged.read_bytes()
    done = hurt.run("", ci=True)
    assert done.status == 15, done.output
    assert damaged.name in " ".join(hurt.failures())
    assert damaged.read_bytes() == before


def test_a_workload_that_the_baseline_knows_must_be_measured(desk: Desk, tmp_path: Path, quick: QuickPytest) -> None:
    renamed = Desk(tmp_path, quick)
    (renamed.folder / "workloads" / "small.yaml").rename(renamed.folder / "workloads" / "other.yaml")
    renamed.baselines = desk.baselines
    done = renamed.run("", ci=True)
    assert done.status == 15, done.output
    assert any("small[" in message for message in renamed.failures())


def test_an_update_from_a_failing_run_stores_nothing_unless_told(tmp_path: Path, quick: QuickPytest) -> None:
    desk = Desk(tmp_path, quick)
    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_fails():\n    assert False\n", encoding="utf-8")
    options = (str(failing), "--update-baselines", "--perf-sessions", "2")
    refused = desk.run("", *options)
    assert refused.status == 1, refused.output
    assert "baselines not updated" in refused.output
    assert desk.sessions() == []
    desk.run("", *options, "--perf-update-anyway")
    assert len(desk.sessions()) == 2


@pytest.mark.alone
def test_saved_sessions_can_be_compared_without_pytest(desk: Desk, tmp_path: Path) -> None:
    saved = tmp_path / "candidate"
    desk.run("decode_factor=2.5", "--perf-save-sessions", str(saved))
    baseline = desk.sessions()[0].parent
    done = subprocess.run(
        [sys.executable, "-m", "phasegate", "compare", str(baseline), str(saved), "--json",
         "--policy", str(desk.folder / "policy.yaml")],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"] == "REGRESSION"


def test_a_sentinel_is_measured_in_every_session(tmp_path: Path, quick: QuickPytest) -> None:
    desk = Desk(tmp_path, quick)
    with SimulatorEngine.from_words(SPEED) as frozen:
        done = desk.run("", "--update-baselines", "--perf-sessions", "2", "--perf-sentinel-url", frozen.base_url)
    assert done.status == 0, done.output
    assert all("sentinel[" in path.read_text(encoding="utf-8") for path in desk.sessions())


def test_load_is_measured_on_the_server_that_the_gate_restarted(desk: Desk) -> None:
    """The gate's sessions restart the engine, which gets another address; what comes after must find it."""
    done = desk.runner.run(
        "perf_tests/test_regression.py", "perf_tests/test_slo.py::test_objective_is_kept", "-q",
        "--perf-engine", "simulator", "--perf-engine-config", SPEED, "--perf-concurrency", "1",
        "--perf-slo", "ttft:p50:30s", "--perf-load-requests", "5", "--perf-sessions", "2",
        "--perf-workloads", str(desk.folder / "workloads"), "--perf-baselines", str(desk.baselines),
        "--perf-policy", str(desk.folder / "policy.yaml"),
    )  # fmt: skip
    assert "connect" not in done.output, done.output
    assert "INVALID_RUN" not in done.output, done.output
