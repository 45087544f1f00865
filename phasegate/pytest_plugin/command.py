"""Commands that a run tells its user to type: the user's own command line, changed as little as the purpose needs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from phasegate.core.hiding import HIDDEN, hide, secrets_of

if TYPE_CHECKING:
    import pytest

RESULTS = {"--perf-report": 1, "--perf-save-sessions": 1, "--junitxml": 1, "--junit-xml": 1, "--benchmark-json": 1}
"""Options that name where results go, and how many words follow each."""

SELECTION = {
    "-k": 1, "-m": 1, "--deselect": 1, "--ignore": 1, "--ignore-glob": 1, "--lf": 0, "--last-failed": 0, "--ff": 0,
    "--failed-first": 0, "--nf": 0, "--new-first": 0, "--sw": 0, "--stepwise": 0, "--sw-skip": 0, "--stepwise-skip": 0,
    "-x": 0, "--exitfirst": 0, "--maxfail": 1, "-n": 1, "--numprocesses": 1, "--benchmark-only": 0,
}  # fmt: skip
"""Options that leave tests out, or end a run early."""

JUDGEMENT = {
    "--missing-baseline": 1, "--perf-reference-url": 1, "--perf-reference-model": 1, "--perf-reference-config": 1,
    "--perf-blocks": 1, "--perf-sessions": 1, "--update-baselines": 0, "--perf-update-anyway": 0, "--perf-budget": 1,
    "--perf-seed": 1,
}  # fmt: skip
"""Options that say how a run compares, which a run that records does not."""

ENVIRONMENT = ("OPENAI_BASE_URL", "PYTEST_ADDOPTS")
"""Variables that may say what is measured; the key is none of them."""


def repeating_command(config: pytest.Config, seed: int | None) -> str:
    """What was typed, to be typed again: without the paths of results, with the seed where one was drawn."""
    drawn = seed is not None and config.getoption("--perf-seed") is None
    return _command(config, RESULTS, ["--perf-seed", str(seed)] if drawn else [])


def recording_command(config: pytest.Config, sessions: int) -> str:
    """The command that records a baseline of what this run measures: the user's own, with every test of its files."""
    return _command(
        config, {**RESULTS, **SELECTION, **JUDGEMENT}, ["--update-baselines", "--perf-sessions", str(sessions)]
    )


def _command(config: pytest.Config, without: dict[str, int], more: Sequence[str]) -> str:
    kept = list(_without(list(map(str, config.invocation_params.args)), without))
    given = {name: os.environ.get(name) for name in ENVIRONMENT}
    if config.getoption("--perf-base-url"):
        del given["OPENAI_BASE_URL"]
    before = "".join(f"{name}={shlex.quote(value)} " for name, value in given.items() if value)
    return hide(
        _OF_AN_OPTION.sub(rf"\1{HIDDEN}", before + shlex.join(["pytest", *kept, *more])), *secrets_of(os.environ)
    )


_OF_AN_OPTION = re.compile(r"(?i)(--[\w-]*(?:key|token|secret|password)(?:\s+|=)['\"]?)[^\s'\"]+")
"""A credential behind an option, such as that of an engine that is started."""


def _without(words: list[str], options: dict[str, int]) -> Iterator[str]:
    """The words without those options and what follows them, however they are written: ``-k x``, ``-kx``, ``--o=x``."""
    skip = 0
    for word in words:
        if skip:
            skip -= 1
            continue
        option, equals, _ = word.partition("=")
        if option in options:
            skip = 0 if equals else options[option]
        elif not (word[:2] in options and options[word[:2]] and not word.startswith("--")):
            yield word
