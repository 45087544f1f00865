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


def _places(config: pytest.Config) -> Iterator[Path]:
    called_in = Path(config.invocation_params.dir)
    yield from (config.rootpath, called_in)
    for argument in config.args:
        yield from (called_in / argument.split("::")[0]).resolve().parents
