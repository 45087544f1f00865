"""``phasegate selftest``: it holds for the gate as it is, and fails for a gate that is blind or cries wolf."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phasegate import cli
from phasegate.core.session import Session
from phasegate.engines.base import EngineError
from phasegate.gate.facts import PHASES
from phasegate.gate.policy import Policy
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.selftest import known_truth, measured, rescaled
from phasegate.measure.selftest import proof as whole
from phasegate.measure.selftest.check import Check, Count, clean_builds_needed
from phasegate.measure.selftest.known_truth import misjudged, simulated_baseline, simulated_checks
from phasegate.measure.selftest.measured import MeasuredPass
from phasegate.measure.selftest.noise import draw_sessions, noise_of
from phasegate.measure.selftest.plants import NOISE, PLANTS, UNCHANGED, Plant, workloads
from phasegate.measure.selftest.rescaled import rescale
from phasegate.measure.selftest.sequence import judge_in_sequence
from phasegate.measure.selftest.simulated import simulated_sessions
from phasegate.measure.selftest.unchanged import judge_unchanged
from phasegate.store.baseline_folder import BaselineStore

SEED = 3

MEASURED = Check("measured", "nothing", "no REGRESSION", "left out of this test", True)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of everything, and no pass over HTTP: it has tests of its own."""
    monkeypatch.setattr(whole, "measured_pass", lambda *_: MeasuredPass((MEASURED,)))
    monkeypatch.setattr(known_truth, "CANDIDATES", 1)
    monkeypatch.setattr(rescaled, "SPLITS", 6)
    monkeypatch.setattr(rescaled, "SLOWED_SPLITS", 1)


@pytest.fixture(scope="module")
def baseline() -> list[Session]:
    """Simulated sessions of an unchanged engine."""
    return simulated_baseline(SEED)


def selftest(folder: Path, *options: str, policy: str = "alpha: 0.01\n") -> int:
    """Run the command with few builds, away from the repository's own baselines."""
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    (folder / "sessions").mkdir(exist_ok=True)
    common = ["--builds", "5", "--seed", str(SEED), "--baselines", str(folder / "sessions")]
    return cli.main(["selftest", *common, "--policy", str(folder / "policy.yaml"), *options])


@pytest.mark.usefixtures("quick")
def test_the_gate_as_it_is_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything planted is found, nothing else; the last line says so, and the seed is told."""
    assert selftest(tmp_path) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("PASS: every planted slowdown was found in its phase")
    assert f"seed {SEED}" in out
    assert "takes 299 builds without an alarm" in out


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("rules: [{gate: never}]\n", "no ttft gates under this policy"),
        ("tolerance: {prefill: 0.9, decode: 0.9}\n", "not found"),
    ],
    ids=["nothing gates", "a huge tolerance"],
)
def test_a_blinded_gate_fails(policy: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy that lets the planted slowdowns through ends with status 1 and says which and why."""
    assert selftest(tmp_path, policy=policy) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("FAIL:")
    assert told in out


@pytest.mark.usefixtures("quick")
def test_stored_sessions_are_taken_where_there_are_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], baseline: Sequence[Session]
) -> None:
    """Two stored sessions are told and left alone; the twelve of another server are re-scaled by name."""
    few = [replace(one, fingerprint="few-00000000") for one in baseline[:2]]
    store = BaselineStore(tmp_path / "sessions")
    store.add(few)
    store.add(list(baseline))
    assert selftest(tmp_path, "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["result"] == "PASS"
    assert [one["source"] for one in told["rescaled"]] == [baseline[0].fingerprint]
    assert any(line.startswith("few-00000000: not re-scaled, 2 ") for line in told["remarks"])


@pytest.mark.parametrize("options", [["--builds", "0"], ["--seed", "-1"], ["--builds", "many"]])
def test_wrong_numbers_are_usage_errors(options: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        selftest(tmp_path, *options)
    assert ended.value.code == 2


def test_a_folder_that_does_not_exist_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["selftest", "--baselines", str(tmp_path / "nowhere")]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_a_session_file_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sessions" / "some-server-00000000"
    folder.mkdir(parents=True)
    (folder / "torn.json").write_text('{"benchm', encoding="utf-8")
    assert selftest(tmp_path) == 2
    assert "torn.json" in capsys.readouterr().err


WIDE = Policy(tolerance=dict.fromkeys(PHASES, 0.3), gate="always")
"""Wide enough for a machine that runs other tests at the same time."""


@pytest.mark.alone
def test_the_pass_over_http_measures_and_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prefill three times as slow is found by few sessions over a socket, and the unchanged engine is left alone."""
    for name, value in (("BASELINE_SESSIONS", 5), ("CANDIDATE_SESSIONS", 2), ("REQUESTS", 3)):
        monkeypatch.setattr(measured, name, value)
    slow = Plant("prefill costs three times as much", {"prefill_factor": 3.0}, "ttft", "prefill")
    monkeypatch.setattr(measured, "MEASURED_PLANTS", (slow,))
    monkeypatch.setattr(measured, "workloads", lambda requests, few: workloads(requests, few=few)[:1])
    found = measured.measured_pass(WIDE, SEED)
    assert [check for check in found.checks if not check.holds] == []
    assert len(found.checks) == 2
    assert len(found.unchanged) == 7


def test_a_pass_that_cannot_be_measured_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that does not start is a failed check with its reason, not a silence."""

    def refuse(*_: object) -> None:
        raise EngineError("no port is free")

    monkeypatch.setattr(measured, "connect", refuse)
    (check,) = measured.measured_pass(Policy(), SEED).checks
    assert not check.holds
    assert check.remedy == "no port is free"


def test_a_slowdown_in_the_wrong_phase_does_not_count_as_found(baseline: Sequence[Session]) -> None:
    """A gate that names decode for a slower prefill is a broken gate."""
    slower = NOISE.changed(seed=SEED, decode_factor=1.1)
    result = judge_in_sequence(baseline, simulated_sessions(slower, workloads(8), 5, 12), Policy())
    prefill, decode, _ = PLANTS
    assert misjudged(decode, result) is None
    assert str(misjudged(prefill, result)).startswith("found in the wrong place: selftest-answer")
    assert str(misjudged(UNCHANGED, result)).startswith("a false alarm: ")


def test_simulated_checks_hold_for_another_seed() -> None:
    assert [check for check in simulated_checks(Policy(), 11) if not check.holds] == []


def test_sessions_that_stand_apart_are_told(baseline: Sequence[Session]) -> None:
    """Where three of twelve sessions are 30 % slower, unchanged splits raise alarms, and a remark counts them."""
    mixed = [_slower(one, 1.3) if number % 4 == 0 else one for number, one in enumerate(baseline)]
    found = rescale("mixed", mixed, Policy(alpha=0.2), SEED)
    assert found.alarms.hits > 0
    assert f"{found.alarms.hits} of {found.alarms.n} splits raised an alarm" in found.remark()


def test_a_broken_promise_does_not_hold(baseline: Sequence[Session]) -> None:
    """A gate that says beforehand that it would find a slowdown, and then does not, fails."""
    found = rescale("steady", baseline, Policy(), SEED)
    assert found.check().holds
    first, *others = found.detections
    deaf = replace(first, found=0, promised=first.tried, broken=first.tried)
    check = replace(found, broken=Count.of(first.tried, first.tried), detections=(deaf, *others)).check()
    assert not check.holds
    assert check.remedy.startswith("missed although promised: ")


def test_a_policy_that_lets_proven_slowdowns_pass_breaks_no_promise(baseline: Sequence[Session]) -> None:
    """Slowed by the tolerance, from where on it fails, every other split measures a little less: it is proven."""
    policy = Policy(tolerance=dict.fromkeys(PHASES, 0.3), fail_from=dict.fromkeys(PHASES, 0.3))
    found = rescale("steady", baseline, policy, SEED)
    assert sum(one.promised for one in found.detections) > 0
    assert found.check().holds


def test_unchanged_builds_that_alarm_too_often_do_not_hold(baseline: Sequence[Session]) -> None:
    """Judged with a generous alpha and held to a strict one, the same builds fail."""
    seen = noise_of(baseline)
    eager = Policy(alpha=0.9, tolerance=dict.fromkeys(PHASES, 0.002), floor=dict.fromkeys(PHASES, 0.0))
    loose = judge_unchanged(seen, eager, source="loose", builds=20, baseline_sessions=12, seed=SEED)
    assert loose.alarms.hits > 0
    assert loose.check().holds
    strict = replace(loose, alpha=0.001)
    assert not strict.check().holds
    assert "cries wolf" in strict.check().remedy


def test_drawn_sessions_vary_as_the_seen_ones_did(baseline: Sequence[Session]) -> None:
    """Noise seen in drawn sessions is the noise that they were drawn with."""
    seen = noise_of(baseline)
    again = noise_of(draw_sessions(seen, 400, np.random.default_rng(SEED)))
    for metric, own in seen.own.items():
        total = np.hypot(own, seen.host[metric])
        assert np.hypot(again.own[metric], again.host[metric]) == pytest.approx(total, rel=0.15)
    assert again.levels == pytest.approx(seen.levels, rel=0.01)


def test_counts_decide_by_their_bounds() -> None:
    """One alarm in ten builds agrees with 1 %, three do not."""
    assert not Count.of(1, 10).exceeds(0.01)
    assert Count.of(3, 10).exceeds(0.01)
    assert clean_builds_needed(0.01) == 299


def test_the_simulator_keeps_the_cores_of_its_client() -> None:
    """A restarted simulator inherits this process's cores, so measuring it must not narrow them."""
    before = os.sched_getaffinity(0)
    with connect(EngineOptions(base_url=None, engine="simulator")):
        assert os.sched_getaffinity(0) == before


def test_the_options_have_the_documented_defaults() -> None:
    from phasegate.cli import selftest as cli_selftest

    parser = argparse.ArgumentParser()
    cli_selftest.add_parser(parser.add_subparsers())
    args = parser.parse_args(["selftest"])
    assert (args.builds, args.seed, args.baselines, args.policy, args.json) == (300, 1, "baselines", None, False)


def _slower(session: Session, factor: float) -> Session:
    rows = (replace(one, samples=tuple(value * factor for value in one.samples)) for one in session.measurements)
    return replace(session, measurements=tuple(rows))
