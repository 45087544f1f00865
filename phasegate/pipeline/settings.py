"""What a pipeline says, as environment variables; an empty one counts as not given.

A pipeline's inputs reach a step safely as environment variables only: put into the text of a script, they would be
run by the shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OPTIONS: dict[str, str] = {
    "PERF_ENDPOINT": "--perf-base-url",
    "PERF_REFERENCE_ENDPOINT": "--perf-reference-url",
    "PERF_MODEL": "--perf-model",
    "PERF_ENGINE": "--perf-engine",
    "PERF_HARDWARE": "--perf-hardware",
    "PERF_WORKLOADS": "--perf-workloads",
    "PERF_POLICY": "--perf-policy",
    "PERF_BASELINES": "--perf-baselines",
    "PERF_SESSIONS": "--perf-sessions",
    "PERF_BUDGET": "--perf-budget",
}
"""Environment variable -> the pytest option it stands for."""

SUITE, ARGS, OUT = "PERF_SUITE", "PERF_ARGS", "PERF_OUT"


class PipelineError(ValueError):
    """A setting that cannot be used; one line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A run in a pipeline.

    Attributes:
        suite: what pytest is given.
        options: pytest options, in order.
        out: folder of results.
        baselines: folder of stored sessions.
    """

    suite: str
    options: tuple[str, ...]
    out: Path
    baselines: Path


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings of this environment.

    Raises:
        PipelineError: ``PERF_ARGS`` has an open quote, or the results would lie in the suite.
    """
    given = {name: environment.get(name, "").strip() for name in (*OPTIONS, SUITE, ARGS, OUT)}
    options = [f"{option}={given[name]}" for name, option in OPTIONS.items() if given[name]]
    try:
        options += shlex.split(given[ARGS])
    except ValueError as error:
        raise PipelineError(f"{ARGS} is {given[ARGS]!r}: {error}; write it as on a command line") from None
    suite, out = given[SUITE] or "perf_tests", Path(given[OUT] or "perf-results")
    if Path(suite).resolve() == out.resolve():
        raise PipelineError(f"{OUT} is {str(out)!r}, the suite itself; name another folder for results")
    return Settings(suite, tuple(options), out, Path(given["PERF_BASELINES"] or "baselines"))
