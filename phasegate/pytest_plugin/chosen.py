"""Which tests of a run measure, whether the run was asked to measure, and what was asked for that no test hears.

A test that measures takes the fixture ``perf_lab``, itself or through others. Such tests run where the command line
asks for them; a plain ``pytest`` in a repository with other tests leaves them out and says so in one line.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.showing import shown
from phasegate.pytest_plugin.home import WORKLOADS
from phasegate.pytest_plugin.options import OPTIONS

LAB, ROW, BENCHMARK = "perf_lab", "perf_row", "benchmark"

ASKS: tuple[tuple[str, str, str], ...] = (
    ("--perf-request-rate", "perf_shape", "is judged by perf_tests/test_arrivals.py"),
    ("--perf-trace", "perf_shape", "is judged by perf_tests/test_arrivals.py"),
    ("--perf-find-limit", "perf_load", "is judged by perf_tests/test_slo.py"),
    ("--perf-slo", "perf_objective", "is judged by perf_tests/test_slo.py"),
    ("--perf-reference-url", "perf_gate", "is judged by perf_tests/test_regression.py"),
    ("--perf-reference-config", "perf_gate", "is judged by perf_tests/test_regression.py"),
    ("--update-baselines", "perf_gate", "stores what perf_tests/test_regression.py measures"),
)
"""An option that asks for a judgement or a file, the fixture that hears it, and which tests those are."""

LEFT_OUT = "tests that measure a server were left out of this run; they run where they are named: {how}"


def measures(item: pytest.Item) -> bool:
    """Whether a test measures a server."""
    return LAB in getattr(item, "fixturenames", ())


def in_worker() -> bool:
    """Whether this process is one of several that share the tests of a run (pytest-xdist)."""
    return bool(os.environ.get("PYTEST_XDIST_WORKER"))


def typed(config: pytest.Config) -> tuple[str, ...]:
    """The words of the command line behind ``pytest``, without what a configuration file adds."""
    return tuple(map(str, config.invocation_params.args))


def asked_to_measure(config: pytest.Config, path: Path, folders: Collection[Path] | None = None) -> bool:
    """Whether the command line asks for the measuring tests of a file: by a path, by ``-m perf``, or by an option of
    measuring. ``--collect-only`` shows everything.

    Args:
        config: of the run.
        path: of the file.
        folders: those in which tests measure; a configuration's ``testpaths`` ask for tests only where they name one
            of these. None while that is not known; then they may ask.
    """
    ours = {name for names, _, _ in OPTIONS for name in names}
    return (
        config.getoption("collectonly")
        or re.search(r"\bperf\b", config.getoption("markexpr") or "") is not None
        or any(word.split("=")[0] in ours for word in typed(config))
        or any(_names(config, argument, path, folders) for argument in config.args)
    )


def _names(config: pytest.Config, argument: str, path: Path, folders: Collection[Path] | None) -> bool:
    """Whether an argument names a file: the file itself, or a folder within the project rather than all of it."""
    here = Path(config.invocation_params.dir)
    place = (here / argument.split("::")[0]).resolve()
    if config.getoption("pyargs") and not place.exists():
        return True  # the name of a package
    if place == path:
        return True
    if place not in path.parents:
        return False
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and folders is not None and place not in folders:
        return False
    whole = place == here or place in here.parents
    below = place not in (project := _project(config, path), *project.parents)
    return below or (place == path.parent and not whole)


def _project(config: pytest.Config, path: Path) -> Path:
    """The folder that holds a file's suite: with its workloads, else where pytest was called, else pytest's root."""
    here = Path(config.invocation_params.dir)
    with_workloads = (folder for folder in path.parents if (folder / WORKLOADS).is_dir())
    return next(with_workloads, here if here in path.parents else config.rootpath)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> str:
    """Take those out of ``items`` that measure without having been asked to; one line that says so, empty for none."""
    paths = dict.fromkeys(item.path for item in items if measures(item))
    folders = {path.parent for path in paths}
    asked = {path: asked_to_measure(config, path, folders) for path in paths}
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if not measures(item) or asked[item.path] else left).append(item)
    if not left:
        return ""
    items[:] = kept
    config.hook.pytest_deselected(items=left)
    return left_out_line(config, left)


def left_out_line(config: pytest.Config, left: Sequence[pytest.Item]) -> str:
    """One line that says that tests were left out, and how to run them."""
    folder = Path(os.path.commonpath([item.path.parent for item in left]))
    here = Path(config.invocation_params.dir)
    path = shlex.quote(os.path.relpath(folder, here))
    return LEFT_OUT.format(
        how=shown("pytest -m perf" if folder == here or folder in here.parents else f"pytest {path}")
    )


@contextmanager
def as_benchmarks(items: Sequence[pytest.Item]) -> Iterator[None]:
    """For as long as the context lasts, let tests that show rows of pytest-benchmark seem to take its fixture.

    They ask for it only when they have measured, since it must be given their timer. ``--benchmark-only`` and
    ``--benchmark-skip`` go by what a test takes, and would skip the one and measure for the other.
    """
    closures = {id(names): names for item in items if ROW in (names := getattr(item, "fixturenames", []))}
    hidden = [names for names in closures.values() if BENCHMARK not in names]
    for names in hidden:
        names.append(BENCHMARK)
    try:
        yield
    finally:
        for names in hidden:
            names.remove(BENCHMARK)


def check_heard(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """End the run, before anything is measured, where the command line asks for what no chosen test does.

    Raises:
        pytest.UsageError: one line that names the option and the tests that would hear it.
    """
    fixtures = {name for item in items for name in getattr(item, "fixturenames", ())}
    words = {word.split("=")[0] for word in typed(config)}
    compares = next((name for name in ("--perf-reference-url", "--perf-reference-config") if name in words), None)
    if compares is not None and "--update-baselines" in words:
        raise pytest.UsageError(
            f"{compares} compares with a reference and --update-baselines records without comparing; give one of them"
        )
    for option, fixture, whose in ASKS:
        value = config.getoption(option)
        if value in (None, False) or fixture in fixtures:
            continue
        if option == "--perf-slo" and config.getoption("--perf-find-limit") and "perf_load" in fixtures:
            continue
        asked = option in words or fixture == "perf_shape"
        # Where nothing measures, only an update is refused: what it promises is a file.
        if asked and (LAB in fixtures or option == "--update-baselines"):
            raise pytest.UsageError(shown(f"{_given(option, value)} {whose}, which was not chosen"))


def _given(option: str, value: Any) -> str:
    """The option and its value; an address may hold a password and is left out."""
    if value is True or "reference" in option:
        return option
    return f"{option} {' '.join(value) if isinstance(value, list) else value}"
