"""``--perf-report`` inside a pytest run: listens to how tests end, and writes the reports when the last one has.

It is registered only where a report was asked for, so a run without one pays nothing.
"""

from __future__ import annotations

import importlib
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from phasegate.core.atomic_write import UnwritableError
from phasegate.core.hiding import secrets_of
from phasegate.core.showing import shown
from phasegate.pytest_plugin.command import repeating_command
from phasegate.pytest_plugin.outcomes import NotMeasurable
from phasegate.report.files import ReportPathError, check_path, write_report
from phasegate.report.screen import Terminal

if TYPE_CHECKING:
    from phasegate.diagnose.roofline_words import Roofline
    from phasegate.pytest_plugin.state import PerfState
    from phasegate.report.document.build import Finished
    from phasegate.report.document.model import Document

OPTION = "--perf-report"

NOT_MEASURED = 15


class ReportPlugin:
    """Collects how the tests of one run end and writes its reports.

    Attributes:
        document: what was written, once the run has ended.
    """

    def __init__(self, config: pytest.Config, paths: Sequence[str]) -> None:
        self._config = config
        self._paths = [Path(path).absolute() for path in paths]
        self._outcomes: Counter[str] = Counter()
        self._failures: list[tuple[str, str, str]] = []
        self._interrupted = False
        self._started = monotonic()
        self._said: list[tuple[str, bool]] = []
        self.document: Document | None = None
        for path in self._paths:
            check_path(path, OPTION)
        # Now and not after an hour of measuring: what cannot be loaded must be said before.
        importlib.import_module("phasegate.report.document.build")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count how each test ended, and keep what failed ones said."""
        if report.when == "call" or (report.when == "setup" and not report.passed) or report.failed:
            word = getattr(report, "perf_word", None)
            self._outcomes[word.lower() if word else report.outcome] += 1
        if report.failed:
            word = str(getattr(report, "perf_word", "FAIL"))
            self._failures.append((report.nodeid, word, _message(report, word)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that could not be read is a failure as well."""
        if report.failed:
            self._failures.append((report.nodeid, "FAIL", _last_line(report.longreprtext)))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Called for Ctrl-C, and for a run that has nothing to measure."""
        if getattr(excinfo.value, "returncode", None) == NOT_MEASURED:
            self._failures.append(("the run", "NOT_MEASURED", str(excinfo.value)))
        else:
            self._interrupted = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write every report; a report that cannot be written is said and changes no verdict."""
        for path, problem in self._write(session):
            self._said.append((f"no report: {problem}", False) if problem else (f"report: {path}", True))
        if session.exitstatus == NOT_MEASURED and self._interrupted_early():
            self._tell()

    def _write(self, session: pytest.Session) -> Iterator[tuple[Path, str]]:
        """Path and problem of each report; the problem is empty where it was written.

        Whatever goes wrong here, also a fault of ours, must not take the verdict of a measured run with it.
        """
        from phasegate.report.document.build import build

        try:
            self.document = build(self._finished(session))
        except Exception as error:
            yield self._paths[0], f"it could not be made, which is a fault of phasegate: {error!r}"
            return
        for path in self._paths:
            try:
                write_report(self.document, path)
            except ReportPathError as error:
                yield path, str(error)
            except Exception as error:
                yield path, f"{path}: it could not be drawn, which is a fault of phasegate: {error!r}"
            else:
                yield path, ""

    def _interrupted_early(self) -> bool:
        """pytest writes no summary for a run that ended with a status of ours."""
        return any(word == "NOT_MEASURED" for _, word, _ in self._failures)

    def _tell(self) -> None:
        terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        for line, good in self._said if terminal is not None else ():
            Terminal(terminal).write_line(line, **({} if good else {"red": True}))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self) -> None:
        """Say where the reports are."""
        self._tell()

    def _finished(self, session: pytest.Session) -> Finished:
        from phasegate.plugin import ENDING, STATE
        from phasegate.report.document.build import Finished
        from phasegate.report.document.model import BROKEN, Failure

        state, ending = session.config.stash.get(STATE, None), session.config.stash[ENDING]
        if ending.reason and ending.word in BROKEN:
            self._failures.append(("the run", ending.word, ending.reason))
        common: dict[str, Any] = {
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "exit_status": int(session.exitstatus),
            "word": ending.word,
            "scope": (ending.scope.judged, ending.scope.not_judged),
            "failures": [Failure(*one) for one in self._failures],
            "outcomes": dict(self._outcomes),
            "interrupted": self._interrupted,
            "duration": monotonic() - self._started,
            "commands": self._commands(state),
            "secrets": secrets_of(os.environ),
        }
        return Finished(**common) if state is None else Finished(**common, **_of_state(state))

    def _commands(self, state: PerfState | None) -> list[str]:
        """What was typed, made repeatable, and what shows the results again."""
        typed = repeating_command(self._config, state.engine_options.seed if state is not None else None)
        results = [path for path in self._paths if path.suffix.lower() == ".json"]
        return [typed, *(f"phasegate report {shlex.quote(path.name)} -o report.html" for path in results[:1])]


def _of_state(state: PerfState) -> dict[str, Any]:
    """What the state of a run knows, in the words of `Finished`."""
    gate, load, limits = state.gate, state.load, state.limits.found
    gated = gate.gated if gate is not None else None
    return {
        "runner": state.runner,
        "laws": state.laws,
        "invalid": state.invalid,
        "policy": state.policy,
        "result": gated.result if gated is not None else None,
        "baseline": gated.baseline if gated is not None else (),
        "candidate": gated.candidate if gated is not None else tuple(gate.updates if gate is not None else ()),
        "stored": gate.stored if gate is not None else "",
        "record_with": gate.record_with() if gate is not None else "",
        "paired": state.reference_options() is not None,
        "load": load.load if load is not None else None,
        "objectives": state.load_options.objectives,
        "judged": load.judged if load is not None else (),
        "remarks": (*(gate.said if gate is not None else ()), *_stopped(state), *_unread(state)),
        "diagnosis": _diagnosis(state, limits),
        "roofline": _roofline(state, limits),
        "server_timings": _server_timings(state),
    }


def _roofline(state: PerfState, limits: Roofline | None) -> dict[str, Any] | None:
    """The line that says which hardware would help, and the arithmetic behind it."""
    from phasegate.diagnose.roofline_words import arithmetic, verdict_line
    from phasegate.pytest_plugin.hardware_limit import level_lines

    if limits is None:
        return None
    return {"verdict": verdict_line(limits), "arithmetic": [*arithmetic(limits), *level_lines(limits, state.load)]}


def _diagnosis(state: PerfState, limits: Roofline | None) -> list[dict[str, Any]]:
    """What takes the time, as the summary says it; nothing about figures that cannot be judged."""
    from phasegate.pytest_plugin.diagnosis import run_diagnosis
    from phasegate.report.diagnosis_lines import diagnosis_record

    diagnosis = run_diagnosis(state, limits)
    if diagnosis is None:
        return []
    found = diagnosis_record(diagnosis)
    share = {"symptom": "the longest request", "cause": found["share"], "phase": found["phase"]}
    return [*found["findings"], *([share] if found["share"] else [])]


def _stopped(state: PerfState) -> list[str]:
    """Which limit of the run kept it from measuring all it wanted; nothing where none did."""
    refused = state.engine_options.traffic.refused
    return [] if refused is None else [refused]


def _unread(state: PerfState) -> list[str]:
    """Why the server's own page, or one of its workers', was not read; nothing where it was, or was not asked for."""
    if state.runner is None or not state.runner.runs or state.runner.server_metrics.note is None:
        return []
    return [state.runner.server_metrics.note]


def _server_timings(state: PerfState) -> dict[str, dict[str, float]] | None:
    """The server's own clock beside the client's; None where it tells nothing."""
    from phasegate.report.document.from_server import server_timings_of

    if state.runner is None or not state.runner.runs:
        return None
    return server_timings_of(state.runner.server_metrics, state.runner.runs.values())


def _message(report: pytest.TestReport, word: str) -> str:
    """What a failed test said, without its word and without a traceback."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message) if crash is not None else report.longreprtext
    first = next((line for line in text.splitlines() if line.strip()), "failed without a word")
    return first.removeprefix("Judged: ").removeprefix(f"{word}: ")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "could not be collected")


def register(config: pytest.Config) -> None:
    """Listen where reports were asked for.

    Raises:
        pytest.UsageError: the path is none of a report.
        NotMeasurable: a report could not be written there.
    """
    paths = config.getoption(OPTION)
    if not paths:
        return
    try:
        config.pluginmanager.register(ReportPlugin(config, paths), "phasegate-report")
    except ReportPathError as error:
        raise pytest.UsageError(shown(str(error))) from None
    except UnwritableError as error:
        raise NotMeasurable(shown(str(error))) from None
