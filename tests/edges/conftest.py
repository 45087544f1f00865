"""What tests of the edges share: quick pytest runs, small workloads, a simulated server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edges.quick_pytest import QuickPytest


@pytest.fixture(scope="session")
def quick() -> Iterator[QuickPytest]:
    """Real pytest runs."""
    with QuickPytest() as runner:
        yield runner


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with one workload of three short requests."""
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "small.yaml").write_text("input_tokens: 64\noutput_tokens: 8\nrequests: 3\nwarmups: 0\n")
    return folder
