"""A suite's own engines, metrics and workloads: asks the hooks and says in one line what is wrong with an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from phasegate.core.metric import Metric, register
from phasegate.core.settings_file import SettingsError
from phasegate.core.workload import Workload

if TYPE_CHECKING:
    from phasegate.engines.base import Engine


def own_engine(config: pytest.Config) -> Engine | None:
    """The engine that some hook makes for ``--perf-engine NAME``, or None.

    Raises:
        EngineError: what a hook gave is no engine.
    """
    from phasegate.engines.base import Engine, EngineError

    name = config.getoption("--perf-engine")
    made: Engine | None = config.hook.pytest_perf_engine(name=name, config=config)
    if made is None:
        return None
    # Not isinstance: it would read properties, which an engine that is not started yet may not have.
    has = {*dir(type(made)), *getattr(made, "__dict__", {})}
    missing = sorted(_parts(Engine) - has)
    if not missing:
        return made
    raise EngineError(
        f"pytest_perf_engine gave a {type(made).__name__} for --perf-engine {name}, which is no engine: it lacks "
        f"{', '.join(missing)} (see phasegate.engines.base.Engine)"
    )


def _parts(protocol: type) -> set[str]:
    return {*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))}


def register_metrics(config: pytest.Config) -> None:
    """Add the metrics of all hooks to the table.

    Raises:
        SettingsError: one is no metric, or has the name of another.
    """
    for metrics in config.hook.pytest_perf_metrics(config=config):
        for metric in metrics:
            if not isinstance(metric, Metric):
                raise SettingsError(f"pytest_perf_metrics gave {metric!r}, which is no phasegate.core.metric.Metric")
            try:
                register(metric)
            except ValueError as error:
                raise SettingsError(f"pytest_perf_metrics: {error}") from None


def with_own_workloads(config: pytest.Config, files: dict[str, Workload]) -> dict[str, Workload]:
    """The workloads of files and hooks together, by name.

    Raises:
        SettingsError: a hook gave something else, or a name that is taken.
    """
    found = dict(files)
    for workloads in config.hook.pytest_perf_workloads(config=config):
        for workload in workloads:
            if not isinstance(workload, Workload):
                raise SettingsError(
                    f"pytest_perf_workloads gave {workload!r}, which is no phasegate.core.workload.Workload"
                )
            if workload.name in found:
                raise SettingsError(f"pytest_perf_workloads: a workload named {workload.name!r} exists already")
            found[workload.name] = workload
    return found
