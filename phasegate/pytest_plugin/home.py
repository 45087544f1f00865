"""Where a suite keeps its files: the folder that holds ``fixtures/`` and ``baselines/``.

Normally pytest's root. In a repository without a pytest configuration the root depends on where pytest was called;
the files then stand beside the suite that was named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

WORKLOADS = Path("fixtures") / "workloads"


def suite_home(config: pytest.Config) -> Path:
    """The first folder with workloads among pytest's root, the folder it was called in, and those above the paths it
    was given; else the root."""
    return next((place for place in _places(config) if (place / WORKLOADS).is_dir()), config.rootpath)


def baselines_folder(config: pytest.Config) -> Path:
    """The folder of baselines that the run reads and, where it is asked to, writes."""
    given = config.getoption("--perf-baselines")
    return Path(given) if given else suite_home(config) / "baselines"


def check_places(config: pytest.Config) -> None:
    """Find out, before anything is measured, whether what the run is to store can be written.

    Raises:
        UnwritableError: it cannot; one line.
    """
    from phasegate.core.atomic_write import check_writable

    sessions = config.getoption("--perf-save-sessions")
    if sessions:
        check_writable(Path(sessions), "--perf-save-sessions")
    if config.getoption("--update-baselines"):
        check_writable(baselines_folder(config), "--perf-baselines")


def _places(config: pytest.Config) -> Iterator[Path]:
    called_in = Path(config.invocation_params.dir)
    yield from (config.rootpath, called_in)
    for argument in getattr(config, "args", ()):  # not known yet while pytest loads its plugins
        yield from (called_in / argument.split("::")[0]).resolve().parents
