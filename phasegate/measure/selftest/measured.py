"""The pass that is truly measured: the simulator serves over HTTP, the product's own client and clock measure it.

It covers what the model of time leaves out: the wire, time stamps, parsing, restarts between sessions. Its slowdowns
are large, because few short sessions on a machine that does other things cannot show a small one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from phasegate.core.prompt import CalibrationError
from phasegate.core.session import Session
from phasegate.engines.base import EngineError
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.measure_session import sit
from phasegate.measure.selftest.check import Check
from phasegate.measure.selftest.known_truth import for_simulator, planted_check
from phasegate.measure.selftest.plants import MEASURED_PLANTS, NOISE, UNCHANGED, Plant, workloads
from phasegate.measure.session_runner import MeasurementError, SessionRunner

PART = "measured"

SPEED = 5.0
"""Simulated seconds in one: a token takes 1.6 ms, which a client on the same machine still measures well."""

REQUESTS = 3
BASELINE_SESSIONS = 6
CANDIDATE_SESSIONS = 3

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MeasuredPass:
    """What came of the pass over HTTP.

    Attributes:
        checks: one for each plant.
        unchanged: all sessions of the unchanged engine, baseline first; empty where measuring failed.
    """

    checks: tuple[Check, ...]
    unchanged: tuple[Session, ...] = ()


def measured_pass(policy: Policy, seed: int, say: Say | None = None) -> MeasuredPass:
    """Measure an unchanged and some slowed simulators over HTTP and judge them.

    ``say`` is told what is being measured. Where measuring fails, that is the one check that does not hold.
    """
    policy = for_simulator(policy)
    config = NOISE.changed(seed=seed, speed=SPEED)
    words = " ".join(f"{name}={json.dumps(value)}" for name, value in _changed_settings(config).items())
    try:
        with connect(EngineOptions(base_url=None, engine="simulator", engine_config=words, seed=seed)) as runner:
            return _judged(runner, config, policy, say)
    except (EngineError, MeasurementError, CalibrationError) as error:
        broken = Check(PART, "measuring the simulator", "sessions", f"failed: {error}", False, str(error))
        return MeasuredPass((broken,))


def _changed_settings(config: SimulatorConfig) -> dict[str, object]:
    """Settings that differ from the defaults."""
    plain, default = json.loads(config.to_json()), json.loads(SimulatorConfig().to_json())
    return {name: value for name, value in plain.items() if value != default[name]}


def _judged(runner: SessionRunner, config: SimulatorConfig, policy: Policy, say: Say | None) -> MeasuredPass:
    checks = []
    runner, baseline = _sessions(runner, config, BASELINE_SESSIONS, say, "the baseline")
    unchanged = list(baseline)
    for plant in (UNCHANGED, *MEASURED_PLANTS):
        runner, candidate = _sessions(runner, config, CANDIDATE_SESSIONS, say, plant.name, plant)
        checks.append(planted_check(PART, plant, [judge(baseline, candidate, policy)]))
        unchanged += candidate if plant is UNCHANGED else []
    return MeasuredPass(tuple(checks), tuple(unchanged))


def _sessions(
    runner: SessionRunner, config: SimulatorConfig, count: int, say: Say | None, what: str, plant: Plant = UNCHANGED
) -> tuple[SessionRunner, list[Session]]:
    """Sessions of an engine with a plant, each on a fresh process; and the lab that measured the last one."""
    engine = runner.engine
    assert isinstance(engine, SimulatorEngine)
    engine.config = config.changed(session=engine.config.session, **plant.changes)
    found = []
    for number in range(1, count + 1):
        if say is not None:
            say(f"measuring over HTTP: {what}, session {number} of {count}")
        measured_session = sit(runner, workloads(REQUESTS, few=True))
        runner = measured_session.runner
        found.append(measured_session.session)
    return runner, found
