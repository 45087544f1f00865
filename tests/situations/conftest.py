"""What the situations share: quick runs of pytest and of commands, and a suite of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from phasegate.cli import main
from tests.edges.conftest import quick, small

__all__ = ["quick", "small"]

ONE_SMALL = "name: small\ninput_tokens: 32\noutput_tokens: 24\nrequests: 8\nwarmups: 1\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A repository as `phasegate init` writes it, all workloads included; the current folder."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert main(["init"]) == 0
    capsys.readouterr()
    return folder


@pytest.fixture
def one_workload(suite: Path) -> Callable[[str], Path]:
    """Leaves the suite with one workload, by default a small one, and returns the suite."""

    def leave(text: str = ONE_SMALL) -> Path:
        for path in (suite / "fixtures" / "workloads").glob("*.yaml"):
            path.unlink()
        (suite / "fixtures" / "workloads" / "small.yaml").write_text(text)
        return suite

    return leave
