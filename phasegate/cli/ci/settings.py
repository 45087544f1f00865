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
    "PERF_BASE_URL": "--perf-base-url",
    "PERF_REFERENCE_URL": "--perf-reference-url",
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

FORMER = {"PERF_ENDPOINT": "PERF_BASE_URL", "PERF_REFERENCE_ENDPOINT": "PERF_REFERENCE_URL"}
"""Former name of a variable -> its name; `--perf-endpoint` is the API's dialect, so a URL is not called one."""

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
        notes: lines for whoever wrote the pipeline.
    """

    suite: str
    options: tuple[str, ...]
    out: Path
    baselines: Path
    notes: tuple[str, ...] = ()


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings of this environment.

    Raises:
        PipelineError: ``PERF_ARGS`` has an open quote, the results would lie in the suite or among baselines or
            workloads, or a variable is given under its former name, too, and says something else.
    """
    given = {name: environment.get(name, "").strip() for name in (*OPTIONS, SUITE, ARGS, OUT)}
    notes = _former(given, environment)
    options = [f"{option}={given[name]}" for name, option in OPTIONS.items() if given[name]]
    try:
        options += shlex.split(given[ARGS])
    except ValueError as error:
        # The value is not shown: a key of an engine may be among the options.
        raise PipelineError(f"{ARGS}: {error}; write the options as on a command line") from None
    suite, out = given[SUITE] or "perf_tests", Path(given[OUT] or "perf-results")
    if Path(suite).resolve() == out.resolve():
        raise PipelineError(f"{OUT} is {str(out)!r}, the suite itself; name another folder for results")
    baselines = Path(given["PERF_BASELINES"] or "baselines")
    _refuse_inside(out, baselines, "the folder of baselines")
    _refuse_inside(out, Path(given["PERF_WORKLOADS"] or "fixtures/workloads"), "the folder of workloads")
    return Settings(suite, tuple(options), out, baselines, notes)


def _refuse_inside(out: Path, folder: Path, what: str) -> None:
    """Refuse results in a folder whose files are read as something else."""
    if folder.resolve() in (out.resolve(), *out.resolve().parents):
        raise PipelineError(f"{OUT} is {str(out)!r}, which lies in {what}; name another folder for results")


def _former(given: dict[str, str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Take over what is given under a former name; one line for each."""
    notes = []
    for former, name in FORMER.items():
        value = environment.get(former, "").strip()
        if not value:
            continue
        if given[name] not in ("", value):
            raise PipelineError(f"{former} and {name} mean the same and name different servers; give {name} alone")
        given[name] = value
        notes.append(f"{former} is now called {name}; the old name still works")
    return tuple(notes)
