"""A pytest plugin that plants a host on which other processes are busy: ``-p tests.edges.busy_host``."""

from __future__ import annotations

import pytest

from phasegate.core.identity import ServerIdentity
from phasegate.engines.host_probe import HostWatch, Mark

CORES = 1.6


class BusyWatch(HostWatch):
    """A watch that reads other processes at work, from the moment that it is asked for on."""

    def mark(self) -> Mark:
        """This moment, with what others use of each second."""
        real = super().mark()
        return Mark(real.at, real.own + CORES * real.at, 0.0, real.own)


def planted(server: ServerIdentity) -> HostWatch:
    """A watch for any server, wherever it runs."""
    assert server.engine
    return BusyWatch()


@pytest.fixture(autouse=True, scope="session")
def _busy_host() -> None:
    # For the whole process: this plugin is for runs of their own.
    pytest.MonkeyPatch().setattr("phasegate.measure.connect.watch_host", planted)
