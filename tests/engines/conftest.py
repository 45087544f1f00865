"""One real engine for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEngine]:
    """The embedded engine as users get it, started once; tests leave it running and may fill its cache."""
    log: Path = tmp_path_factory.mktemp("engine") / "engine.log"
    with EmbeddedEngine(EmbeddedConfig(), log_path=log) as running:
        yield running
