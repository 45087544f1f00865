"""Settings of all tests of the library."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from phasegate.core.pipeline import in_pipeline
from tests.alone import turn

# A build judges a change, so it tries the same examples each time; at a desk they differ from run to run and search on.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if in_pipeline() else "desk")

# Runs of pytest that a test starts are not part of the run that it belongs to: in a worker of pytest-xdist they would
# inherit these, take themselves for workers, and refuse to measure.
for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
    os.environ.pop(name, None)

TURNS = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist, before it starts, where all workers of this run take turns."""
    stash = node.config.stash
    if TURNS not in stash:
        stash[TURNS] = tempfile.TemporaryDirectory(prefix="phasegate-turns-")
        node.config.add_cleanup(stash[TURNS].cleanup)
    node.workerinput["turns"] = stash[TURNS].name


# First, so that no other plugin's clock for the test runs while it waits.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """In a worker, a test waits for its turn; see `tests.alone`."""
    folder = getattr(item.config, "workerinput", {}).get("turns")
    if folder is None:
        return (yield)
    with turn(Path(folder), alone=item.get_closest_marker("alone") is not None):
        return (yield)
