"""From a lab to a verdict against stored sessions: how many sessions are measured.

A few candidate sessions are compared with those in ``baselines/``; a comparison that the first ones already acquit ends
there, the others get more sessions up to a budget fixed beforehand and are judged once, at the end. Stopping early only
ever acquits, so it costs no false alarms. Where a limit of the run ends the measuring, the whole sessions are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from phasegate.core.session import Session
from phasegate.core.token_budget import NOTHING, LimitReachedError, spending_of
from phasegate.core.workload import Workload
from phasegate.gate.client_growth import OWN_ERROR, tells_own_error
from phasegate.gate.comparable import differing_keys
from phasegate.gate.judge import Place, judge
from phasegate.gate.pinned import with_pinned
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import GateResult, Verdict
from phasegate.measure.measure_session import REPEATS, session_of, sit
from phasegate.measure.session_runner import SessionRunner
from phasegate.store.baseline_folder import BaselineStore

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Gated:
    """A verdict and the sessions it was made from, baseline or reference first.

    Attributes:
        result: the verdict.
        baseline, candidate: the sessions, or the blocks of each side.
        stopped: which limit of the run ended the measuring before its plan was done; None where none did.
    """

    result: GateResult
    baseline: tuple[Session, ...]
    candidate: tuple[Session, ...]
    stopped: str | None = None


def find_baseline(
    store: BaselineStore, server: Session, policy: Policy, pinned: str | None
) -> tuple[list[Session], str]:
    """Stored sessions of the same server, and a word on near ones where there is none.

    Keys that the policy names under ``compare_across`` may differ; the newest such baseline is taken.

    Raises:
        InvalidBaselineError: a stored session cannot be used.
    """
    own = store.read(server.fingerprint, pinned)
    if own:
        return own, ""
    others = [sessions for name in store.fingerprints(pinned) if (sessions := store.read(name, pinned))]
    if policy.compare_across:
        alike = [
            one for one in others if not differing_keys(one[-1].server, server.server, ignore=policy.compare_across)
        ]
        if alike:
            return max(alike, key=lambda sessions: sessions[-1].recorded_at), ""
    return [], f"{len(others)} baselines of other servers are stored" if others else ""


def gate_stored(
    runner: SessionRunner,
    workloads: Sequence[Workload],
    store: BaselineStore,
    policy: Policy,
    *,
    sessions: int | None = None,
    pinned: str | None = None,
    record_with: str | None = None,
    say: Say | None = None,
) -> Gated:
    """Judge a lab's engine against stored sessions. The lab's own measurements are the first session.

    Args:
        sessions: candidate sessions to measure; None follows the policy's sequence.
        record_with: the command that would record a baseline, for the words of a missing one.

    Raises:
        InvalidBaselineError: a stored session cannot be used.
        MeasurementError, CalibrationError: a session cannot be measured.
    """
    known = session_of(runner, [], None)
    baseline, nearby = find_baseline(store, known, policy, pinned)
    place = Place(looked_for=str(store.folder(known.fingerprint, pinned)), nearby=nearby)
    place = place if record_with is None else replace(place, record_with=record_with)
    taken = _Taken(runner, say)
    if not baseline:
        # Nothing to compare with, so nothing is lost to a disturbed host and no second try is worth its time.
        taken.take_for_the_report(workloads)
        taken.take(workloads, sessions or 1, repeats=0)
        result = judge([], taken.sessions, policy, place=place, stopped=taken.stopped)
        return Gated(result, (), tuple(taken.sessions), taken.stopped)
    planned = sessions is None
    for wanted in (policy.first_sessions, policy.session_budget) if sessions is None else (sessions,):
        taken.take(workloads, wanted, planned=sessions or policy.first_sessions)
        result = judge(
            baseline,
            taken.sessions,
            policy,
            planned=planned and taken.stopped is None,
            place=place,
            stopped=taken.stopped,
        )
        # Only what is still open is measured again.
        workloads = [one for one in workloads if any(cell.label in result.needs_more for cell in one.cells)]
        if not workloads or taken.stopped:
            break
    candidate = taken.sessions
    if _regressed(result) and tells_own_error(baseline):
        runner.calibrations.measure([1])
        facts = {OWN_ERROR: runner.calibrations.as_json()}
        candidate = [replace(one, client={**one.client, **facts}) for one in candidate]
        result = judge(baseline, candidate, policy, planned=planned, place=place, stopped=taken.stopped)
    if pinned is None:
        result = with_pinned(result, _against_pins(store, known, candidate, policy))
    return Gated(result, tuple(baseline), tuple(candidate), taken.stopped)


@dataclass
class _Taken:
    """Sessions measured one after another, whole ones only, until there are enough or a limit of the run ends it.

    Attributes:
        lab: the lab of the newest session; the first goes on with what it has measured already.
        say: told what is going on.
        sessions: the whole ones; where not one is, what the first one measured whole.
        stopped: which limit ended it, in one line, or None.
    """

    runner: SessionRunner
    say: Say | None
    sessions: list[Session] = field(default_factory=list)
    stopped: str | None = None

    def take(
        self, workloads: Sequence[Workload], wanted: int, *, planned: int | None = None, repeats: int = REPEATS
    ) -> None:
        """Measure until there are ``wanted`` sessions; those beyond ``planned`` only where the limits leave room."""
        while len(self.sessions) < wanted and self.stopped is None:
            number = len(self.sessions)
            if self.say is not None and number:
                self.say(f"session {number + 1} of {wanted}")
            if planned is not None and number >= planned:
                more = sum((spending_of(one, self.runner.requests) for one in workloads), NOTHING)
                self.stopped = self.runner.traffic.why_not_more(more)
            if self.stopped is None:
                self._take_one(workloads, fresh=number > 0, repeats=repeats)

    def take_for_the_report(self, workloads: Sequence[Workload]) -> None:
        """The first session where there is nothing to compare it with: nobody asks what disturbed it."""
        try:
            self.sessions.append(session_of(self.runner, [self.runner.measure_whole(one) for one in workloads], None))
        except LimitReachedError as error:
            self._keep_whole_runs(error)

    def _take_one(self, workloads: Sequence[Workload], *, fresh: bool, repeats: int) -> None:
        try:
            measured_session = sit(self.runner, workloads, fresh=fresh, say=self.say, repeats=repeats)
        except LimitReachedError as error:
            self._keep_whole_runs(error)
            return
        self.sessions.append(measured_session.session)
        self.runner = measured_session.runner

    def _keep_whole_runs(self, error: LimitReachedError) -> None:
        """Where a limit ended the first session, what it measured whole is still a session, of fewer workloads."""
        self.stopped = str(error)
        whole = [run for run in self.runner.runs.values() if run.cut is None and run.problem() is None]
        if not self.sessions and whole:
            self.sessions.append(session_of(self.runner, whole, None))


def _regressed(result: GateResult) -> bool:
    return any(row.verdict is Verdict.REGRESSION for row in result.findings)


def _against_pins(
    store: BaselineStore, known: Session, candidate: Sequence[Session], policy: Policy
) -> dict[str, GateResult]:
    """The same candidate against every pinned baseline of this server: they see what creeps slowly."""
    return {
        label: judge(sessions, candidate, policy)
        for label in store.pins()
        if (sessions := store.read(known.fingerprint, label))
    }
