"""Hooks for a suite's own engines, metrics and workloads; implement them in a conftest.py or a plugin.

See docs/howto/extend.md for worked examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from phasegate.core.metric import Metric
    from phasegate.core.workload import Workload
    from phasegate.engines.base import Engine


@pytest.hookspec(firstresult=True)
def pytest_perf_engine(name: str, config: pytest.Config) -> Engine | None:
    """An engine, not started yet, for ``--perf-engine NAME``; None where the name is not yours.

    Asked anew for each engine that a run needs: the candidate, and the reference of a paired comparison.
    """


@pytest.hookspec
def pytest_perf_metrics(config: pytest.Config) -> list[Metric]:  # noqa: ARG001
    """Metrics beyond the built-in ones; measured of every request, stored with every session, judged by the policy."""
    return []


@pytest.hookspec
def pytest_perf_workloads(config: pytest.Config) -> list[Workload]:  # noqa: ARG001
    """Workloads beside those in files, for those that have to be computed."""
    return []
