"""The pytest plugin, in the order of a pytest run: options, configuration, collection, fixtures, reports, exit.

It translates between pytest and the library and computes nothing. It must stay light and inert: in a repository that
does not use it, importing it costs a few milliseconds and changes nothing. Everything heavy is imported inside the
functions that need it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from phasegate.core.showing import shown
from phasegate.pytest_plugin.home import WORKLOADS, suite_home
from phasegate.pytest_plugin.options import OPTIONS

if TYPE_CHECKING:
    from phasegate.core.metric import Metric
    from phasegate.core.workload import Cell
    from phasegate.measure.session_runner import SessionRunner
    from phasegate.pytest_plugin.end import Ending
    from phasegate.pytest_plugin.state import PerfState
    from phasegate.pytest_plugin.tally import Tally
    from phasegate.stats.outcome import LawResult
    from phasegate.stats.workload_run import WorkloadRun

STATE = pytest.StashKey["PerfState"]()
TALLY = pytest.StashKey["Tally"]()
ENDING = pytest.StashKey["Ending"]()

ELSEWHERE = "phasegate_elsewhere"
"""Under which a worker of pytest-xdist says which tests it left out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the measuring suite; every one starts with ``--perf``."""
    group = parser.getgroup("phasegate", "measure an LLM server phase by phase (phasegate)")
    for names, help_text, extra in OPTIONS:
        group.addoption(*names, help=help_text, **extra)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own capturing, which takes over the streams
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """Open output that is closed on nothing, before pytest fails to write there; only in a repository with a suite."""
    if None in (sys.stdout, sys.stderr) and (suite_home(early_config) / WORKLOADS).is_dir():
        from phasegate.core.output import open_closed

        open_closed()
    return (yield)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Hooks for engines, metrics and workloads of a suite's own."""
    from phasegate.pytest_plugin import hooks

    pluginmanager.add_hookspecs(hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Register markers, and check where reports go; nothing else happens until a test asks to measure."""
    from phasegate.pytest_plugin.chosen import in_worker

    config.addinivalue_line("markers", "perf: measures a server (phasegate)")
    if in_worker():
        return
    # Where workers run the tests, only what they report tells of them here.
    if config.getoption("dist", "no") != "no" or config.getoption("--update-baselines"):
        _tally(config)
    if config.getoption("--perf-report"):
        from phasegate.pytest_plugin.report import register

        _tally(config)
        register(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a suite's run go on to its own exit status where nobody takes what it prints, as behind ``head``."""
    terminal: Any = session.config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None and (suite_home(session.config) / WORKLOADS).is_dir():
        from phasegate.core.output import Outlet

        terminal._tw._file = Outlet(terminal._tw._file)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give one item to every workload cell for tests that take ``perf_cell``."""
    from phasegate.pytest_plugin.chosen import LAB, asked_to_measure

    if LAB in metafunc.fixturenames and not asked_to_measure(metafunc.config, metafunc.definition.path):
        return  # Left out later; what it would be given need not be read.
    if "perf_cell" in metafunc.fixturenames:
        try:
            workloads = _state(metafunc.config).workloads
        except (pytest.UsageError, pytest.exit.Exception):
            workloads = {}  # Said once, and without a traceback, when collection is done.
        cells = [cell for workload in workloads.values() for cell in workload.cells]
        metafunc.parametrize("perf_cell", cells, ids=[cell.label for cell in cells])
    if {"perf_level", "perf_batch_level", "perf_objective"} & set(metafunc.fixturenames):
        _parametrize_load(metafunc)


def _parametrize_load(metafunc: pytest.Metafunc) -> None:
    """One item for every level of load, and for every objective where the test takes one."""
    from phasegate.pytest_plugin.load import objective_id

    levels: tuple[int, ...] = ()
    objectives: tuple[Any, ...] = ()
    with contextlib.suppress(
        pytest.UsageError, pytest.exit.Exception
    ):  # Said once, and without a traceback, when collection is done.
        options = _state(metafunc.config).load_options
        levels, objectives = options.levels, options.objectives or (None,)
    if "perf_level" in metafunc.fixturenames:
        metafunc.parametrize("perf_level", levels)
    if "perf_batch_level" in metafunc.fixturenames:
        metafunc.parametrize("perf_batch_level", levels[1:])
    if "perf_objective" in metafunc.fixturenames:
        metafunc.parametrize("perf_objective", objectives, ids=list(map(objective_id, objectives)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Leave tests out that measure and were not asked for; let pytest-benchmark see which show rows of it."""
    from phasegate.pytest_plugin.chosen import as_benchmarks, leave_out, measures

    line = leave_out(config, items)
    before = [item for item in items if measures(item)]
    with as_benchmarks(items):
        yield
    if line or before:
        tally = _tally(config)
        tally.elsewhere = line
        tally.left = {item.nodeid for item in before}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """End a run that would measure, before anything is started, where an option or a file is wrong.

    Only here are the items those that will run: some selections (``--lf``) come after all others.
    """
    from phasegate.pytest_plugin.chosen import check_heard, in_worker, measures

    config, measuring = session.config, [item for item in session.items if measures(item)]
    if measuring:
        tally = _tally(config)
        tally.choose(measuring)
        tally.left -= set(tally.measuring)
    if in_worker():
        return  # Tests that measure refuse to; an error here would be an internal one of pytest-xdist.
    if measuring:
        from phasegate.pytest_plugin.plan import wanted_by

        _state(config).wanted = wanted_by(measuring, _state(config).workloads)
        _check_shape(config)
    if session.items and not config.getoption("collectonly"):
        check_heard(config, session.items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With ``--perf-dry-run``: say what the collected items would ask for, and run none of them."""
    if not session.config.getoption("--perf-dry-run"):
        return None
    from phasegate.pytest_plugin.token_cap import dry_run_lines

    print(*["", *map(shown, dry_run_lines(_state(session.config)))], sep="\n")
    return True


def _check_shape(config: pytest.Config) -> None:
    from phasegate.pytest_plugin.load_shape import asked_shape

    if "perf_shape" not in _state(config).wanted.fixtures:
        return
    try:
        asked_shape(config)
    except ValueError as error:
        raise pytest.UsageError(shown(str(error))) from None


def _tally(config: pytest.Config) -> Tally:
    """How the tests of this run end, counted from the first need on."""
    from phasegate.pytest_plugin.tally import Tally

    tally = config.stash.get(TALLY, None)
    if tally is None:
        tally = config.stash[TALLY] = Tally()
        config.pluginmanager.register(tally, "phasegate-tally")
    return tally


def _state(config: pytest.Config) -> PerfState:
    """What this run knows, made at the first need; a wrong option or file ends the run with one line."""
    state = config.stash.get(STATE, None)
    if state is None:
        from phasegate.core.settings_file import SettingsError
        from phasegate.pytest_plugin.chosen import in_worker
        from phasegate.pytest_plugin.faults import before_measuring, spread
        from phasegate.pytest_plugin.state import PerfState

        with before_measuring():
            try:
                state = config.stash[STATE] = PerfState.from_config(config)
            except (SettingsError, ValueError) as error:
                raise pytest.UsageError(shown(str(error))) from None
        if not in_worker():  # which measures nothing
            spread(config, state)
    return state


@pytest.fixture(scope="session")
def perf_lab(request: pytest.FixtureRequest) -> Iterator[SessionRunner]:
    """The lab of this run: a started engine and everything measured on it so far."""
    from phasegate.pytest_plugin.chosen import in_worker
    from phasegate.pytest_plugin.outcomes import Judged

    if in_worker():
        from phasegate.pytest_plugin.end import PARALLEL

        # Not pytest.exit: in a worker that would be an internal error of pytest-xdist.
        raise Judged("NOT_MEASURED", PARALLEL)
    state = _state(request.config)
    with state.connect() as runner:
        yield runner


@pytest.fixture
def perf_run(perf_lab: SessionRunner, request: pytest.FixtureRequest) -> Any:
    """Measures a workload by name and returns its `WorkloadRun`: once per run, and more for an undecided law."""
    from phasegate.core.prompt import CalibrationError, UncountableError
    from phasegate.core.token_budget import LimitReachedError
    from phasegate.measure.session_runner import MeasurementError
    from phasegate.pytest_plugin.outcomes import NotMeasurable

    state = _state(request.config)

    asked = state.asked.setdefault(request.node.nodeid, [])

    def measure(name: str) -> Any:
        if name not in asked:
            asked.append(name)
        try:
            return perf_lab.measure(state.workload(name))
        except UncountableError as error:  # so will every other workload
            raise NotMeasurable(str(error)) from None
        except LimitReachedError as error:
            raise state.cut_short(str(error)) from None
        except (MeasurementError, CalibrationError) as error:
            raise state.invalid_run(str(error)) from None

    return measure


@pytest.fixture
def perf_law(request: pytest.FixtureRequest) -> Any:
    """Takes a `LawResult`, keeps it for the summary, and ends the item by its outcome."""
    from phasegate.pytest_plugin.outcomes import Judged, NotJudged
    from phasegate.stats.laws import held_back
    from phasegate.stats.laws.cache import KNOWN_MISS

    state = _state(request.config)

    def judge(result: LawResult) -> None:
        if result.detail == KNOWN_MISS:
            raise NotJudged("ADVISORY", result.reason)
        # A law of TTFT has its blocks all the same: only TPOT needs the counts.
        disproved = state.disproved_counts(request.node.nodeid) if result.n == 0 else None
        if disproved is not None:
            raise state.invalid_run(disproved)
        if result.outcome.value != "PASS":
            result = held_back(result, state.disturbance(request.node.nodeid))
        state.keep_law(request.node.nodeid, result)
        properties = request.node.user_properties
        properties[:] = [
            *(one for one in properties if one[0] != "law"),
            ("law", f"{result.outcome.value}: {result.reason}"),
        ]
        if result.outcome.value != "PASS":
            raise Judged(result.outcome.value, result.reason, more_would_decide=result.needed is not None)

    return judge


@pytest.fixture(scope="session")
def perf_gate(perf_lab: SessionRunner, request: pytest.FixtureRequest) -> Any:
    """The gate of this run; the sessions it needs are measured when the first row is asked for."""
    from phasegate.pytest_plugin.gate import PytestGate

    state = _state(request.config)
    if state.gate is None:
        state.gate = PytestGate(state, perf_lab)
    return state.gate


@pytest.fixture(scope="session")
def perf_load(perf_lab: SessionRunner, request: pytest.FixtureRequest) -> Any:
    """The load of this run: levels of concurrency, collisions and the search, each measured when first asked for."""
    from phasegate.pytest_plugin.load import PytestLoad

    state = _state(request.config)
    if state.load is None:
        state.load = PytestLoad.on(perf_lab, state)
    return state.load


@pytest.fixture(scope="session")
def perf_shape(perf_load: Any, request: pytest.FixtureRequest) -> Any:
    """The load that the options of arrivals ask for, measured when first asked for."""
    from phasegate.pytest_plugin.load_shape import PytestShape

    return PytestShape.on(perf_load, request.config)


@pytest.fixture
def perf_row(request: pytest.FixtureRequest) -> Any:
    """Shows measured samples as a row of pytest-benchmark, as if it had timed them itself."""
    from phasegate.pytest_plugin.replay_timer import row_info

    state = _state(request.config)

    def show(run: WorkloadRun, cell: Cell, metric: Metric) -> None:
        from phasegate.pytest_plugin.replay_timer import ReplayTimer

        samples = list(run.values(metric.short, cell).values())
        if not samples:
            raise state.invalid_run(f"{cell.label}: no request gave a usable {metric.short}")
        group = f"{metric.short} ({metric.phase.value})"
        request.node.add_marker(pytest.mark.benchmark(timer=ReplayTimer(samples), group=group))
        benchmark = request.getfixturevalue("benchmark")
        benchmark.extra_info.update(row_info(run, cell, metric))
        benchmark.pedantic(lambda: None, rounds=len(samples))

    return show


MORE_ROUNDS = 2
"""How often an item that more requests would decide gets as many again: four times as many in all. Looking up to three
times makes the chance of a wrong word at a law's margin at most three times what one look has."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Measure more for a law that is not decided yet, instead of asking the user to."""
    from phasegate.pytest_plugin.outcomes import Judged

    try:
        return (yield)
    except Judged as error:
        undecided = error
    state = _state(pyfuncitem.config)
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for _ in range(MORE_ROUNDS):
        if not (undecided.more_would_decide and state.measure_more(pyfuncitem.nodeid)):
            break
        try:
            pyfuncitem.obj(**arguments)
        except Judged as error:
            undecided = error
        else:
            return True
    raise state.with_limit(undecided, pyfuncitem.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Let the word of a judged item travel with its report."""
    report: Any = yield
    state = item.config.stash.get(STATE, None)
    if state is not None and state.live is not None:
        state.live.clear()  # before pytest writes on
    error = call.excinfo.value if call.excinfo is not None else None
    word = getattr(error, "word", None)
    if word is not None:
        report.perf_word = word
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, Any] | None:
    """Give inconclusive and invalid items an outcome of their own: never a pass, not an ordinary failure."""
    word = getattr(report, "perf_word", None)
    if word is None or report.passed:
        return None
    from phasegate.pytest_plugin.outcomes import LETTERS

    letter = LETTERS.get(word)
    if letter is None:
        return None
    return word.lower(), letter, (word, {"yellow": True})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show what was measured: tables, attribution, laws, and on what; then the word of the run."""
    state, tally = config.stash.get(STATE, None), config.stash.get(TALLY, None)
    if tally is not None and tally.elsewhere:
        terminalreporter.write_line(tally.elsewhere)
    if state is not None and state.runner is not None:
        from phasegate.pytest_plugin.diagnosis import write_run_diagnosis
        from phasegate.pytest_plugin.faults import in_summary
        from phasegate.pytest_plugin.hardware_limit import write_roofline
        from phasegate.report.screen import Terminal
        from phasegate.report.summary import write_summary

        terminal = Terminal(terminalreporter)
        with in_summary(terminalreporter):
            write_summary(terminal, state.runner, state.laws, state.gate, state.invalid, state.load)
            write_roofline(terminal, state.limits, state.load)
            write_run_diagnosis(terminal, state, state.limits.found)
    ending: Ending | None = config.stash.get(ENDING, None)
    if ending is not None and ending.measuring:
        from phasegate.report.screen import Terminal
        from phasegate.report.summary import write_end

        # A fault in the summary has changed the status since.
        ending = ending.at(int(terminalreporter._session.exitstatus))
        write_end(Terminal(terminalreporter), ending.word, list(ending.lines()))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Store what is to be stored, then decide the word of the run, which its exit status, summary and reports say."""
    config = session.config
    state, tally = config.stash.get(STATE, None), config.stash.get(TALLY, None)
    if tally is None:
        return
    worker = getattr(config, "workeroutput", None)
    if worker is not None:
        worker[ELSEWHERE] = tally.elsewhere
        return
    from phasegate.pytest_plugin.end import cut_short, end_of

    if state is not None and state.gate is not None:
        stopped = exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or cut_short(session, tally)
        state.gate.finish(failed=session.testsfailed, stopped=stopped)

    ending = config.stash[ENDING] = end_of(session, exitstatus, tally, state)
    if ending.measuring:
        session.exitstatus = ending.status


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker of pytest-xdist which tests it left out."""
    line = getattr(node, "workeroutput", {}).get(ELSEWHERE)
    if line:
        _tally(node.config).elsewhere = line


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the engine even where the session ended before its fixtures could."""
    state = config.stash.get(STATE, None)
    if state is not None:
        state.close()
