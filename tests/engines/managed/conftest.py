"""Managed engines of a kind that costs nothing to start."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from phasegate.engines.managed.engine import ManagedEngine, ManagedSettings
from phasegate.engines.managed.kinds import KINDS

PROGRAM = Path(__file__).with_name("fake_engine.py")

MakeEngine = Callable[..., ManagedEngine]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeEngine:
    """Makes an engine whose server is the fake one, in the environment of this Python."""
    weights = tmp_path / "weights"
    weights.mkdir()

    def one(mode: str = "serves", args: str = "") -> ManagedEngine:
        fake = replace(
            KINDS["transformers"],
            distributions=("no-such-package", "pytest"),
            executable="no-such-program",
            call=lambda launch: [str(launch.program), str(PROGRAM), str(launch.port), mode],
        )
        monkeypatch.setitem(KINDS, "transformers", fake)
        settings = ManagedSettings(args=args, model=str(weights), python=sys.executable)
        return ManagedEngine("transformers", settings, log_path=tmp_path / "engine.log")

    return one


def worker_of(engine: ManagedEngine) -> psutil.Process:
    """The worker that the engine's last start began."""
    assert engine.log_path is not None
    return psutil.Process(int(re.findall(r"worker (\d+)", engine.log_path.read_text(encoding="utf-8"))[-1]))


def is_gone(process: psutil.Process) -> bool:
    """Whether a process has ended; one that nobody has collected yet counts as ended."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
