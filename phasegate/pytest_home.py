"""Where a suite keeps its files: the folder that holds ``fixtures/`` and ``baselines/``.

Normally pytest's root. In a repository without a pytest configuration, ``pytest perf_tests`` takes ``perf_tests``
itself for the root, and the files stand beside it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

WORKLOADS = Path("fixtures") / "workloads"


def suite_home(config: pytest.Config) -> Path:
    """The first of pytest's root, the folder pytest was called in and the root's parent that holds workloads; else
    the root."""
    places = (config.rootpath, Path(config.invocation_params.dir), config.rootpath.parent)
    return next((place for place in places if (place / WORKLOADS).is_dir()), config.rootpath)
