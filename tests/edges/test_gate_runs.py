"""The gate as a build sees it: real pytest runs against the simulator, their words and their exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from phasegate.engines.simulator.engine import SimulatorEngine

ROOT = Path(__file__).resolve().parents[2]

WORKLOAD = "input_tokens: 256\noutput_tokens: 8\nrequests: 3\nwarmups: 0\n"

POLICY = "tolerance: {prefill: 0.4, decode: 0.4, both: 0.4}\ngate: always\n"
"""Wide, since a busy machine may shift the simulator's sleeps; the planted slowdowns are far beyond it."""

SPEED = "speed=5"
"""Five simulated seconds in one: a session of the workload takes about half a second."""


class Desk:
    """A folder with one workload and its baselines, and pytest runs on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "workloads").mkdir()
        (folder / "workloads" / "small.yaml").write_text(WORKLOAD, encoding="utf-8")
        (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
        self.baselines = folder / "baselines"

    def run(self, settings: str = "", *options: str, ci: bool = False, **environment: str) -> Any:
        env = {name: value for name, value in os.environ.items() if name not in ("CI", "OPENAI_BASE_URL")}
        env.update(environment)
        if ci:
            env["CI"] = "true"
        return subprocess.run(
            [
                sys.executable, "-m", "pytest", "perf_tests/test_regression.py", "-p", "no:cacheprovider", "-q",
                "--perf-engine", "simulator", "--perf-engine-config", f"{SPEED} {settings}",
                "--perf-workloads", str(self.folder / "workloads"), "--perf-baselines", str(self.baselines),
                "--perf-policy", str(self.folder / "policy.yaml"),
                "--junitxml", str(self.folder / "junit.xml"), *options,
            ],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    def sessions(self) -> list[Path]:
        return sorted(self.baselines.rglob("*.json"))

    def failures(self) -> list[str]:
        tree = ElementTree.parse(self.folder / "junit.xml")
        return [str(node.get("message")).removeprefix("Judged: ") for node in tree.iter("failure")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A desk with eight accepted sessions of a healthy server."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    done = desk.run("", "--update-baselines", "--perf-sessions", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(desk.sessions()) == 8
    assert "stored 8 sessions" in done.stdout
    return desk


def test_without_a_baseline_a_desk_is_told_loudly_and_ci_fails(tmp_path: Path) -> None:
    empty = Desk(tmp_path)
    at_desk = empty.run()
    assert at_desk.returncode == 0, at_desk.stdout + at_desk.stderr
    assert "3 no_baseline" in at_desk.stdout
    assert "--update-baselines" in at_desk.stdout
    in_ci = empty.run(ci=True)
    assert in_ci.returncode == 14, in_ci.stdout + in_ci.stderr
    assert any(message.startswith("NO_BASELINE") for message in empty.failures())


def test_an_unchanged_server_passes_with_every_row_compared(desk: Desk) -> None:
    done = desk.run("", ci=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS" in done.stdout


@pytest.mark.parametrize(
    ("settings", "metric", "phase"),
    [("decode_factor=2.5", "tpot", "decode"), ("prefill_factor=2.5", "ttft", "prefill")],
)
def test_a_slower_phase_fails_the_build_by_name(desk: Desk, settings: str, metric: str, phase: str) -> None:
    done = desk.run(settings, ci=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"levers for {phase}" in " ".join(done.stdout.split())
    assert {message.split(":")[0] for message in desk.failures()} == {"REGRESSION"}
    assert f" {metric}: " in desk.failures()[0]
    assert len(desk.sessions()) == 8, "a regressed session must not enter the baseline"


def test_a_reference_measured_beside_it_needs_no_baseline(tmp_path: Path) -> None:
    slower = Desk(tmp_path).run("decode_factor=2.5", "--perf-reference-config", SPEED, "--perf-blocks", "5", ci=True)
    assert slower.returncode == 1, slower.stdout + slower.stderr
    assert "levers for decode" in " ".join(slower.stdout.split())


def test_one_candidate_session_is_inconclusive(desk: Desk) -> None:
    done = desk.run("", "--perf-sessions", "1", ci=True)
    assert done.returncode == 13, done.stdout + done.stderr
    assert "inconclusive" in done.stdout


def test_a_damaged_baseline_is_named_and_left_as_it_is(desk: Desk, tmp_path: Path) -> None:
    hurt = Desk(tmp_path)
    target = hurt.baselines / desk.sessions()[0].parent.name
    target.mkdir(parents=True)
    damaged = target / desk.sessions()[0].name
    damaged.write_text(desk.sessions()[0].read_text(encoding="utf-8")[:-40], encoding="utf-8")
    before = damaged.read_bytes()
    done = hurt.run("", ci=True)
    assert done.returncode == 15, done.stdout + done.stderr
    assert damaged.name in " ".join(hurt.failures())
    assert damaged.read_bytes() == before


def test_a_workload_the_baseline_knows_and_the_run_lacks_is_a_failure(desk: Desk, tmp_path: Path) -> None:
    renamed = Desk(tmp_path)
    (renamed.folder / "workloads" / "small.yaml").rename(renamed.folder / "workloads" / "other.yaml")
    renamed.baselines = desk.baselines
    done = renamed.run("", ci=True)
    assert done.returncode == 15, done.stdout + done.stderr
    assert any("small[" in message for message in renamed.failures())


def test_an_update_from_a_failing_run_stores_nothing_unless_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_fails():\n    assert False\n", encoding="utf-8")
    options = (str(failing), "--update-baselines", "--perf-sessions", "2")
    refused = desk.run("", *options)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "baselines not updated" in refused.stdout
    assert desk.sessions() == []
    desk.run("", *options, "--perf-update-anyway")
    assert len(desk.sessions()) == 2


def test_saved_sessions_can_be_compared_without_pytest(desk: Desk, tmp_path: Path) -> None:
    saved = tmp_path / "candidate"
    desk.run("decode_factor=2.5", "--perf-save-sessions", str(saved))
    baseline = desk.sessions()[0].parent
    done = subprocess.run(
        [sys.executable, "-m", "phasegate.cli", "compare", str(baseline), str(saved), "--json",
         "--policy", str(desk.folder / "policy.yaml")],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"] == "REGRESSION"


def test_a_sentinel_is_measured_in_every_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with SimulatorEngine.from_words(SPEED) as frozen:
        done = desk.run("", "--update-baselines", "--perf-sessions", "2", "--perf-sentinel-url", frozen.base_url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("sentinel[" in path.read_text(encoding="utf-8") for path in desk.sessions())
