"""The net under a pytest run that measures: an error of ours, or of the machine, is one line and status 15.

Status 1 says that something was measured and is too slow or wrong. An assertion in a test, and an error in a test's own
code, stay what pytest makes of them; an error inside this package, its hooks or what writes the results of the run is
none of that.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.outcomes import Exit, Failed, OutcomeException

from phasegate.core.faults import PACKAGE, fault_line, traceback_wanted
from phasegate.core.output import Outlet
from phasegate.core.prompt import CalibrationError
from phasegate.core.settings_file import SettingsError
from phasegate.engines.base import EngineError
from phasegate.gate.exit_status import PYTEST_NOT_MEASURED
from phasegate.measure.session_runner import MeasurementError
from phasegate.pytest_plugin.outcomes import Judged, NotMeasurable
from phasegate.store.session_file import InvalidBaselineError

if TYPE_CHECKING:
    from phasegate.pytest_plugin.state import PerfState

NET = "phasegate-faults"

ONE_LINE = (EngineError, MeasurementError, CalibrationError, SettingsError, InvalidBaselineError, pytest.UsageError)
"""Errors whose message is one line for the user."""

PLANNED = (OutcomeException, Exit, pytest.UsageError, KeyboardInterrupt, SystemExit)
"""What ends a test or a run on purpose."""


@contextmanager
def before_measuring() -> Iterator[None]:
    """End the run in one line where an error of ours comes before anything is measured."""
    try:
        yield
    except PLANNED:
        raise
    except Exception as error:
        if traceback_wanted():
            raise
        raise NotMeasurable(fault_line(error)) from None


class Net:
    """Registered once a run measures; see the module."""

    def __init__(self, state: PerfState) -> None:
        self._state = state

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Give an item that an error of ours ended the word for it."""
        if call.excinfo is not None:
            reason = _reason(item, call.excinfo)
            if reason is not None:
                judged = self._state.invalid_run(reason)
                if traceback_wanted():
                    traceback.print_exception(call.excinfo.value)
                call.excinfo = pytest.ExceptionInfo.from_exc_info((type(judged), judged, call.excinfo.tb))
        return (yield)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> bool | None:
        """The time limit of pytest-timeout, on items that measure: its own would end the process with status 1."""
        measures = any(name.startswith("perf_") for name in getattr(item, "fixturenames", ()))
        if not measures or threading.current_thread() is not threading.main_thread():
            return None
        limit: float = settings.timeout

        def over(*_: object) -> None:
            raise self._state.invalid_run(
                f"the time limit of pytest-timeout ({limit:g} s) ended the measurement; leave it out for tests that "
                "measure (-o timeout=0), whose limits are --perf-timeout and --perf-budget"
            )

        def cancel() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

        item.cancel_timeout = cancel  # type: ignore[attr-defined]
        signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, limit)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """Catch what goes wrong while results are written, by whatever plugin: a full disk must not look like 1."""
        try:
            yield
        except PLANNED:
            raise
        except Exception as error:
            _say(error)
            session.exitstatus = PYTEST_NOT_MEASURED
        self._session = session
        terminal: Any = session.config.pluginmanager.getplugin("terminalreporter")
        problem = (
            terminal._tw._file.problem if terminal is not None and isinstance(terminal._tw._file, Outlet) else None
        )
        if problem is not None:
            print(f"phasegate: standard output cannot be written: {problem}", file=sys.stderr)
            session.exitstatus = session.exitstatus or PYTEST_NOT_MEASURED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, None, None]:
        """The same for what is stopped and closed last."""
        try:
            yield
        except Exception as error:
            _say(error)
            with contextlib.suppress(AttributeError):  # the session never began
                self._session.exitstatus = PYTEST_NOT_MEASURED


def spread(config: pytest.Config, state: PerfState) -> None:
    """Put the net under the rest of this run."""
    config.pluginmanager.register(Net(state), NET)


@contextmanager
def in_summary(terminal: Any) -> Iterator[None]:
    """A part of the summary; where an error of ours ends it, one line stands there and the run proves nothing."""
    try:
        yield
    except Exception as error:
        if traceback_wanted():
            traceback.print_exception(error)
        terminal.write_line(fault_line(error), red=True)
        terminal._session.exitstatus = PYTEST_NOT_MEASURED


def _say(error: Exception) -> None:
    if traceback_wanted():
        traceback.print_exception(error)
    print(f"phasegate: {fault_line(error)}", file=sys.stderr)


def _reason(item: pytest.Item, info: pytest.ExceptionInfo[BaseException]) -> str | None:
    """Why an item proves nothing, where something else ended it than its own claim; None where that did."""
    error = info.value
    if isinstance(error, (Judged, pytest.skip.Exception, Exit, KeyboardInterrupt, SystemExit)):
        return None
    if not _is_ours(item, info):
        return None
    if isinstance(error, Failed):
        return f"ended while it measured: {next(iter(str(error).splitlines()), 'without a word')}"
    return str(error) if isinstance(error, ONE_LINE) else fault_line(error)


def _is_ours(item: pytest.Item, info: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether an error came from inside this package: through it, and not out of the suite's own code again."""
    ours = False
    for frame, _ in traceback.walk_tb(info.tb):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            ours = ours or frame.f_code.co_name != "pytest_pyfunc_call"
        elif path.is_relative_to(item.config.rootpath) and "site-packages" not in path.parts:
            ours = False
    return ours
