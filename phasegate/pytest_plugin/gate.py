"""The gate inside a pytest run: measures what it needs at the first question, then answers row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.atomic_write import write_atomic
from phasegate.core.naming import path_name
from phasegate.core.pipeline import in_pipeline
from phasegate.core.prompt import CalibrationError
from phasegate.core.session import Session
from phasegate.core.token_budget import LimitReachedError
from phasegate.core.workload import Workload
from phasegate.engines.base import EngineError
from phasegate.gate.acceptance import refusals
from phasegate.gate.changes import changes
from phasegate.gate.exit_status import Spoken
from phasegate.gate.verdict import Finding, Verdict, refused
from phasegate.measure.compare_paired import gate_paired
from phasegate.measure.compare_runs import Gated, gate_stored
from phasegate.measure.connect import connect, one_server
from phasegate.measure.measure_session import sit
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.pytest_plugin.command import recording_command
from phasegate.pytest_plugin.home import baselines_folder
from phasegate.pytest_plugin.outcomes import Judged, NotJudged
from phasegate.report.change_lines import change_line
from phasegate.store.baseline_folder import BaselineStore
from phasegate.store.session_file import InvalidBaselineError, session_text

if TYPE_CHECKING:
    import pytest

    from phasegate.pytest_plugin.state import PerfState


@dataclass(frozen=True, slots=True)
class Refused:
    """Why measured sessions were not stored, and whether it was only that tests of the run failed."""

    reason: str
    by_failures: bool = False


UPDATE_SESSIONS = 8
"""Sessions of an update where the user names no number: enough to find 5 % of decode with a sentinel or in pairs."""

ITEMS = ("ttft", "tpot")
"""Metrics with an item of their own for every cell."""


def store_of(config: pytest.Config) -> BaselineStore:
    """The folder of baselines that a run reads and writes."""
    return BaselineStore(baselines_folder(config))


@dataclass
class PytestGate:
    """What one run compares, and what came of it.

    Attributes:
        state: of the run.
        lab: the candidate.
        gated: the verdict, once measured.
        updates: sessions to be stored at the end of an updating run.
        refused: why they were not stored; None where they were, or nothing was to be.
        stored: one line on those that were; empty where none were.
        said: lines for the summary.
        stopped: which limit of the run ended an update before its last session; None where none did.
    """

    state: PerfState
    runner: SessionRunner
    gated: Gated | None = None
    updates: list[Session] = field(default_factory=list)
    refused: Refused | None = None
    stored: str = ""
    said: list[str] = field(default_factory=list)
    stopped: str | None = None

    def judge(self, workload: str, metric: str) -> None:
        """End the item as its rows say: return for green ones, raise `Judged` or `NotJudged` for the others."""
        result = self._measured().result
        rows = [row for row in result.findings if row.workload == workload and row.metric.split(":")[0] == metric]
        if not rows:
            if self.gated is not None and self.gated.stopped is not None:
                raise self.state.undecided(f"{workload} {metric} was not measured", self.gated.stopped)
            self._judge_whole(result.verdict, result.reason)
            raise NotJudged("ADVISORY", f"no comparison of {metric} is asked for")
        gated = [row for row in rows if row.gated]
        for row in gated or rows:
            if row.verdict.green:
                continue
            if not row.gated:
                raise NotJudged("ADVISORY", f"{row.verdict.value}, informs only: {row.reason}")
            self._end(row.verdict, _sentence(row))
        if not gated:
            raise NotJudged("ADVISORY", "informs only: the other phase binds this workload")

    def judge_whole(self) -> None:
        """End the item as the rows say that no other item speaks for: coverage, whole requests, comparability."""
        result = self._measured().result
        known = {
            (cell.label, metric) for one in self.state.workloads.values() for cell in one.cells for metric in ITEMS
        }
        elsewhere = [
            row for row in result.findings if row.gated and (row.workload, row.metric.split(":")[0]) not in known
        ]
        for row in elsewhere:
            if not row.verdict.green:
                self._end(row.verdict, _sentence(row))
        if not result.findings:
            self._judge_whole(result.verdict, result.reason)

    def _judge_whole(self, verdict: Verdict, reason: str) -> None:
        if not verdict.green:
            self._end(verdict, reason)

    def _end(self, verdict: Verdict, reason: str) -> None:
        if verdict is Verdict.INCONCLUSIVE:
            stopped = self.gated.stopped if self.gated is not None else None
            raise self.state.undecided(reason, stopped if stopped and stopped not in reason else None)
        if self._tolerates(verdict):
            raise NotJudged(verdict.value, reason)
        raise Judged(verdict.value, reason)

    def _tolerates(self, verdict: Verdict) -> bool:
        """Whether an option or the policy lets a run pass with a verdict."""
        if verdict is Verdict.NO_BASELINE:
            given = self.state.config.getoption("--missing-baseline")
            return bool(given == "skip" or (given is None and not in_pipeline()))
        return verdict is Verdict.INCONCLUSIVE and not self.state.policy.inconclusive_fails

    def spoken(self) -> Iterator[Spoken]:
        """What the gate says of the run, whichever of its tests were chosen: every comparison was made all the same."""
        if self.stored:
            yield Spoken("PASS")
        if self.stopped is not None:
            yield Spoken("INCONCLUSIVE")
        if self.gated is None:
            return
        result = self.gated.result
        open_rows = [row.verdict for row in result.findings if row.gated and not row.verdict.green]
        for verdict in dict.fromkeys([result.verdict, *open_rows]):
            yield Spoken(verdict.value, tolerated=self._tolerates(verdict))

    def _measured(self) -> Gated:
        if self.state.config.getoption("--update-baselines"):
            self._measure_update()
            if self.stopped is not None:
                many = f"{len(self.updates)} of {self._sessions_wanted()} sessions were measured"
                raise self.state.cut_short(f"{many}: {self.stopped}")
            raise NotJudged("UPDATING", "this run records baselines, it compares nothing")
        if self.gated is None:
            try:
                self.gated = self._measure()
            except InvalidBaselineError as error:
                self.gated = Gated(refused(Verdict.INVALID_BASELINE, str(error)), (), ())
            except LimitReachedError as error:
                self.gated = Gated(refused(Verdict.INCONCLUSIVE, str(error)), (), (), str(error))
            except (MeasurementError, CalibrationError, EngineError) as error:
                self.gated = Gated(refused(Verdict.INVALID_RUN, str(error)), (), ())
            self._save(self.gated.candidate)
        return self.gated

    def _measure(self) -> Gated:
        option = self.state.config.getoption
        policy, workloads = self.state.policy, list(self.state.workloads.values())
        reference = self.state.reference_options()
        if reference is None:
            with self._sentinel():
                gated = gate_stored(
                    self.runner,
                    workloads,
                    self.store(),
                    policy,
                    sessions=option("--perf-sessions"),
                    pinned=option("--perf-pinned"),
                    record_with=self.record_with(),
                    say=self.state.say,
                )
            # Items behind this one measure with the run's own lab.
            self.runner.follow_engine()
            return gated
        with ExitStack() as stack:
            other = stack.enter_context(connect(reference, self.state.say))
            other.progress = self.runner.progress
            self.runner.warnings += tuple(f"reference: {warning}" for warning in other.warnings)
            gated = gate_paired(self.runner, other, workloads, policy, blocks=self.state.blocks, say=self.state.say)
        note = one_server(self.runner, other)
        if note is None:
            return gated
        return replace(gated, result=replace(gated.result, warnings=(note, *gated.result.warnings)))

    @contextmanager
    def _sentinel(self) -> Iterator[None]:
        """The frozen reference of every session, where one was named, for as long as the context lasts."""
        engine_options = self.state.sentinel_options()
        with ExitStack() as stack:
            if engine_options is not None:
                self.runner.sentinel = stack.enter_context(connect(engine_options, self.state.say))
                self.runner.sentinel.progress = self.runner.progress
            yield

    def store(self) -> BaselineStore:
        """The folder of baselines this run reads and writes."""
        return store_of(self.state.config)

    def record_with(self) -> str:
        """The command that records a baseline of what this run measures, with the user's own options."""
        return recording_command(self.state.config, UPDATE_SESSIONS)

    def _sessions_wanted(self) -> int:
        """How many sessions an update stores."""
        return int(self.state.config.getoption("--perf-sessions") or UPDATE_SESSIONS)

    def _measure_update(self) -> None:
        """Measure the sessions that are to be stored; once, and whole ones only."""
        if self.updates or self.stopped is not None:
            return
        wanted = self._sessions_wanted()
        workloads: list[Workload] = list(self.state.workloads.values())
        try:
            with self._sentinel():
                current = self.runner
                self.runner.calibrations.measure([1])
                for number in range(wanted):
                    self.state.say(f"session {number + 1} of {wanted}")
                    measured_session = sit(current, workloads, fresh=number > 0, say=self.state.say)
                    self.updates.append(measured_session.session)
                    current = measured_session.runner
            self.runner.follow_engine()
        except LimitReachedError as error:
            self.stopped = str(error)
        except (MeasurementError, CalibrationError, EngineError) as error:
            raise self.state.invalid_run(str(error)) from None
        self._save(self.updates)

    def finish(self, failed: int, *, stopped: bool = False) -> None:
        """Store what is to be stored, after the last item, or keep why not.

        Args:
            failed: items that failed, for whatever reason.
            stopped: whether the run ended before its last item.
        """
        if not self.updates:
            return
        self.refused = self._refusal(failed - self.state.cut_items, stopped=stopped) or self._store()
        if self.refused is not None:
            self.said.append(f"baselines not updated: {self.refused.reason}")

    def _refusal(self, failed: int, *, stopped: bool) -> Refused | None:
        """Why the measured sessions must not become baselines, or None."""
        wanted = self._sessions_wanted()
        enough = len(self.updates) >= (self.state.policy.baseline_minimum if self.stopped else wanted)
        if not enough:
            return Refused(f"only {len(self.updates)} of {wanted} sessions were measured")
        found = refusals(self.updates, self.state.policy)
        if found:
            return Refused(f"{found[0]} (and {len(found) - 1} more reasons)" if len(found) > 1 else found[0])
        if stopped:
            return Refused("the run was stopped before its end")
        if failed and not self.state.config.getoption("--perf-update-anyway"):
            reason = f"{failed} items of this run failed; mend them, or store anyway with --perf-update-anyway"
            return Refused(reason, by_failures=True)
        return None

    def _store(self) -> Refused | None:
        pinned = self.state.config.getoption("--perf-pinned")
        store = self.store()
        try:
            before = store.read(self.updates[0].fingerprint, pinned)
            paths = store.add(self.updates, pinned=pinned)
        except (InvalidBaselineError, ValueError, OSError) as error:
            return Refused(str(error))
        cut = f" of {self._sessions_wanted()}" if self.stopped else ""
        why = f": {self.stopped}" if self.stopped else ""
        self.stored = f"stored {len(paths)}{cut} sessions in {paths[0].parent}{why}"
        self.said += [self.stored, *(f"  {change_line(change)}" for change in changes(before, self.updates))]
        return None

    def _save(self, sessions: Any) -> None:
        folder = self.state.config.getoption("--perf-save-sessions")
        if not folder or not sessions:
            return
        home = Path(folder)
        try:
            home.mkdir(parents=True, exist_ok=True)
            for session in sessions:
                name = path_name(session.session_id, "the id of a session")
                write_atomic(home / f"{name}.json", session_text(session))
        except OSError as error:
            raise self.state.invalid_run(
                f"--perf-save-sessions {folder}: the sessions cannot be written: {error.strerror or error}; "
                "make room, or name another folder"
            ) from None
        many = "session" if len(sessions) == 1 else "sessions"
        self.said.append(f"saved {len(sessions)} {many} in {home}")


def _sentence(row: Finding) -> str:
    return f"{row.reason}; {row.advice}" if row.advice else row.reason
