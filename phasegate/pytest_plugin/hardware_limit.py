"""The roofline in a pytest run: its options, checked before anything is measured, and its part of the summary."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from phasegate.diagnose.roofline_words import Roofline
    from phasegate.measure.session_runner import SessionRunner


INDENT = 9
"""Columns of the words before each step of the arithmetic."""


def check_facts(config: pytest.Config) -> None:
    """Read what was given, so that a mistake is said before anything is measured.

    Raises:
        SettingsError: one line naming the option's file, value and remedy.
    """
    model, hardware = config.getoption("--perf-model-facts"), config.getoption("--perf-hardware-facts")
    if model is not None:
        from phasegate.engines.model_facts import read_model

        read_model(Path(model))
    if hardware is not None and hardware != "measure":
        from phasegate.engines.hardware import devices_of

        devices_of(hardware)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The phases of a run against its hardware, worked out once: every output shows the same figures.

    Attributes:
        found: None where facts or measurements are missing, or where the host was busy.
        unknown: why nothing is known, where somebody asked or would have been told; one line.
    """

    found: Roofline | None = None
    unknown: str | None = None


def limits_of(config: pytest.Config, runner: SessionRunner | None, disturbed: str | None) -> RunLimits:
    """The limits of what a run measured.

    Args:
        disturbed: what else the engine's host did meanwhile; then neither the times nor a processor measured beside
            them would be true, and nothing is said of either.
    """
    if runner is None or not runner.runs:
        return RunLimits()
    from phasegate.engines.base import EngineError
    from phasegate.measure.hardware_limits import missing_facts, runner_roofline

    if disturbed is not None:
        return RunLimits(unknown=f"{disturbed} meanwhile; measure on a quieter machine")
    given = config.getoption("--perf-model-facts"), config.getoption("--perf-hardware-facts")
    try:
        found = runner_roofline(runner, *given)
        return RunLimits(found, missing_facts(runner, *given) if found is None and any(given) else None)
    except (EngineError, ValueError) as error:
        return RunLimits(unknown=str(error))


def write_roofline(terminal: Any, limits: RunLimits, load: Any = None) -> None:
    """Write the arithmetic and the line that says which hardware would help; nothing without facts."""
    if limits == RunLimits():
        return
    terminal.section("the hardware's limit", sep="-")
    if limits.found is None:
        terminal.write_line(f"not known: {limits.unknown}")
        return
    from phasegate.diagnose.roofline_words import arithmetic, verdict_line

    width = terminal._tw.fullwidth
    for line in arithmetic(limits.found):
        for part in textwrap.wrap(line, width, subsequent_indent=" " * INDENT):
            terminal.write_line(part)
    for line in (*level_lines(limits.found, load), verdict_line(limits.found)):
        for part in textwrap.wrap(line, width):
            terminal.write_line(part)


def level_lines(found: Roofline, load: Any) -> Iterator[str]:
    """One line for each level of load that was measured."""
    from phasegate.diagnose.roofline_words import batch_line, roofline
    from phasegate.measure.hardware_limits import level_measured

    for run in load.load.levels.values() if load is not None else ():
        measured = level_measured(run)
        if measured is not None:
            yield batch_line(roofline(found.model, found.hardware, measured), run.name)
