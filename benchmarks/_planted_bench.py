"""Measuring the matrix with the product's own code: a stored baseline, then one run after another against it.

A run is what a build does: the policy's sequence of sessions on a freshly started engine, judged against the store.
After a change is judged, sessions are added until the true effect rests on as many as the policy's budget; the gate
never sees those. Every session is stored at once, so that a measurement that was stopped can be taken up again: a run
that is stored already is judged from its sessions and not measured anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from benchmarks._planted_effect import fit
from benchmarks._planted_matrix import Matrix, Plant, run_order
from phasegate.core.session import Session
from phasegate.core.workload import Workload
from phasegate.engines.embedded_config import parse_config
from phasegate.engines.generated.store import ensure_model
from phasegate.gate.acceptance import refusals
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import GateResult
from phasegate.measure.compare_runs import gate_stored
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.measure_session import session_of, sit
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.store.baseline_folder import BaselineStore

SPARE_BASELINE = 6
"""Disturbed baseline sessions that are measured again before the host counts as too noisy for this."""

SEED_OF_EXTRA = 1 << 40
"""Keeps the prompts of the sessions that only the true effect rests on apart from those of the gate's."""

Say = Callable[[str], None]


class TooNoisyError(RuntimeError):
    """The host is too busy to record a baseline. The message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Run:
    """One judged run.

    Attributes:
        plant: what was planted; None for an unchanged run.
        result: the gate's verdict; None where nothing could be measured.
        judged: the sessions that the gate saw.
        extra: sessions for the true effect only.
        by_default: the same sessions judged by the default policy.
        problem: why nothing could be measured, or empty.
    """

    plant: Plant | None
    result: GateResult | None = None
    judged: tuple[Session, ...] = ()
    extra: tuple[Session, ...] = ()
    by_default: GateResult | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """For lines and tables."""
        return self.plant.name if self.plant is not None else "unchanged"

    @property
    def began(self) -> datetime | None:
        """When its first session ended; None where there is none."""
        return moment(self.judged[0]) if self.judged else None


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything that was measured.

    Attributes:
        baseline: its sessions.
        runs: in order of measuring.
        left: plants and unchanged runs for which there was no time.
    """

    baseline: tuple[Session, ...]
    runs: tuple[Run, ...]
    left: tuple[Plant | None, ...]

    @property
    def unchanged(self) -> list[Session]:
        """Sessions of unchanged settings, from the whole of the run, that nobody disturbed."""
        return fit([*self.baseline, *(one for run in self.runs if run.plant is None for one in run.judged)])

    @property
    def moments(self) -> list[datetime]:
        """When sessions ended, the baseline's first, in order of time."""
        later = [moment(one) for run in self.runs for one in (*run.judged, *run.extra)]
        return sorted([*map(moment, self.baseline), *later])


def moment(session: Session) -> datetime:
    """When a session ended."""
    return datetime.fromisoformat(session.recorded_at.replace("Z", "+00:00"))


@dataclass
class Bench:
    """What is needed to measure a matrix.

    Attributes:
        matrix, workloads, policy: what is measured and how it is judged.
        folder: where sessions go; what it holds already is used again.
        engine: ``embedded`` or ``simulator``.
        seed: of the baseline's prompts; each run has its own.
        say: told what happens, one line each.
        limit: seconds after which no further run begins; None for no limit.
    """

    matrix: Matrix
    workloads: Sequence[Workload]
    policy: Policy
    folder: Path
    engine: str
    seed: int
    say: Say
    limit: float | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def store(self) -> BaselineStore:
        """The baseline's sessions."""
        return BaselineStore(self.folder / "baseline")

    def prepare(self) -> None:
        """Generate every model beforehand, so that writing them disturbs no session; refuse wrong settings.

        Raises:
            EngineError: a setting cannot be used or a model cannot be written.
        """
        if self.engine != "embedded":
            return
        for plant in (None, *self.matrix.plants):
            config = parse_config(self._words(plant), source=plant.name if plant else "baseline")
            if config.model == "generated":
                self.say(f"model {ensure_model(config.spec()).name}")

    def measure(self, baseline_sessions: int, unchanged_runs: int) -> Measured:
        """Record the baseline and measure every run.

        Raises:
            TooNoisyError, MeasurementError, EngineError: no baseline can be recorded.
        """
        baseline = self._baseline(baseline_sessions)
        order = run_order(self.matrix.plants, unchanged_runs)
        runs: list[Run] = []
        for number, plant in enumerate(order, 1):
            label = f"{number:03d}-{(plant.name if plant else 'unchanged').replace(' ', '-')}"
            known = self._known(label, plant, baseline)
            if known is None and self.limit is not None and self._elapsed() >= self.limit:
                self.say(f"time is up: {len(order) - number + 1} runs are not measured")
                break
            self.say(f"run {number} of {len(order)}: {plant.name if plant else 'unchanged'}")
            runs.append(known or self._run(number, label, plant, baseline))
            self.say(f"  {_said(runs[-1])}")
        return Measured(tuple(baseline), tuple(runs), tuple(order[len(runs) :]))

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _engine_options(self, number: int, plant: Plant | None) -> EngineOptions:
        return EngineOptions(None, engine=self.engine, engine_config=self._words(plant), seed=self.seed + number)

    def _words(self, plant: Plant | None) -> str:
        return f"{self.matrix.baseline} {plant.settings if plant else ''}".strip()

    def _baseline(self, wanted: int) -> list[Session]:
        """Sessions of unchanged settings that are stored already, else as ``--update-baselines`` would record them."""
        kept: list[Session] = []
        with connect(self._engine_options(0, None)) as runner:
            stored = self.store.read(session_of(runner, [], None).fingerprint)
            if stored:
                self.say(f"judging by the {len(stored)} sessions that are stored already")
                return stored
            for tried in range(wanted + SPARE_BASELINE):
                measured_session = sit(runner, self.workloads, fresh=tried > 0, say=self.say)
                runner = measured_session.runner
                problem = measured_session.session.disturbed or next(
                    iter(refusals([measured_session.session], self.policy)), None
                )
                kept += [] if problem else [measured_session.session]
                self.say(f"baseline session {len(kept)} of {wanted}{f': left out, {problem}' if problem else ''}")
                if len(kept) == wanted:
                    break
        if len(kept) < wanted:
            raise TooNoisyError(
                f"no baseline can be recorded: {len(kept)} of {wanted + SPARE_BASELINE} sessions were fit; the last "
                f"one was not: {problem}; end other programs and start again"
            )
        self.store.add(kept)
        return kept

    def _run(self, number: int, label: str, plant: Plant | None, baseline: Sequence[Session]) -> Run:
        """Measure and judge one run, and store its sessions; those that the gate saw come last and make it whole."""
        try:
            with connect(self._engine_options(number, plant)) as runner:
                gated = gate_stored(runner, self.workloads, self.store, self.policy, say=None)
                extra = self._extra(runner, gated.candidate) if plant is not None else ()
        except MeasurementError as error:
            return Run(plant, problem=str(error))
        if extra:
            self._kept("extra").add(extra, pinned=label)
        self._kept("judged").add(gated.candidate, pinned=label)
        return Run(plant, gated.result, gated.candidate, extra, self._by_default(baseline, gated.candidate))

    def _known(self, label: str, plant: Plant | None, baseline: Sequence[Session]) -> Run | None:
        """The run as its stored sessions tell it, or None where it was not measured yet."""
        candidate = _stored(self._kept("judged"), label)
        if not candidate:
            return None
        result = judge(baseline, candidate, self.policy, planned=True)
        extra = _stored(self._kept("extra"), label)
        return Run(plant, result, candidate, extra, self._by_default(baseline, candidate))

    def _kept(self, part: str) -> BaselineStore:
        return BaselineStore(self.folder / part)

    def _by_default(self, baseline: Sequence[Session], candidate: Sequence[Session]) -> GateResult:
        plain = replace(Policy(), compare_across=self.policy.compare_across)
        return judge(baseline, candidate, plain, planned=True)

    def _extra(self, runner: SessionRunner, judged: Sequence[Session]) -> tuple[Session, ...]:
        """Sessions that give every workload as many as the policy's budget, for the true effect."""
        found: list[Session] = []
        current = replace(runner, seed=runner.seed + SEED_OF_EXTRA)
        while short := [
            one for one in self.workloads if sessions_with(one, [*judged, *found]) < self.policy.session_budget
        ]:
            measured_session = sit(current, short)
            found.append(measured_session.session)
            current = measured_session.runner
        return tuple(found)


def _stored(store: BaselineStore, label: str) -> tuple[Session, ...]:
    """Sessions under a label, whatever their server; empty where there are none."""
    return tuple(one for name in store.fingerprints(label) for one in store.read(name, label))


def sessions_with(workload: Workload, sessions: Sequence[Session]) -> int:
    """How many sessions measured a workload."""
    labels = {cell.label for cell in workload.cells}
    return sum(1 for one in sessions if any(measured.workload in labels for measured in one.measurements))


def _said(run: Run) -> str:
    if run.result is None:
        return f"not judged: {run.problem}"
    return f"{run.result.verdict.value} after {len(run.judged)} sessions: {run.result.reason}"
