"""The roofline in a pytest run: its options, checked before anything is measured, and its part of the summary."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from phasegate.gate.roofline_words import Roofline
    from phasegate.lab import Lab


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


def write_roofline(terminal: Any, config: pytest.Config, lab: Lab, load: Any = None) -> Roofline | None:
    """Write the arithmetic and the line that says which hardware would help, and return it; nothing without facts."""
    if not lab.runs:
        return None
    from phasegate.engines.base import EngineError
    from phasegate.gate.roofline_words import arithmetic, verdict_line
    from phasegate.limits import lab_roofline, missing_facts

    given = config.getoption("--perf-model-facts"), config.getoption("--perf-hardware-facts")
    try:
        found = lab_roofline(lab, *given)
        why = missing_facts(lab, *given) if found is None and any(given) else None
    except (EngineError, ValueError) as error:
        found, why = None, str(error)
    if why is not None:
        terminal.section("the hardware's limit", sep="-")
        terminal.write_line(f"not known: {why}")
    if found is None:
        return None
    terminal.section("the hardware's limit", sep="-")
    width = terminal._tw.fullwidth
    for line in arithmetic(found):
        for part in textwrap.wrap(line, width, subsequent_indent=" " * INDENT):
            terminal.write_line(part)
    for line in (*level_lines(found, load), verdict_line(found)):
        for part in textwrap.wrap(line, width):
            terminal.write_line(part)
    return found


def level_lines(found: Roofline, load: Any) -> Iterator[str]:
    """One line for each level of load that was measured."""
    from phasegate.gate.roofline_words import batch_line, roofline
    from phasegate.limits import level_measured

    for run in load.load.levels.values() if load is not None else ():
        measured = level_measured(run)
        if measured is not None:
            yield batch_line(roofline(found.model, found.hardware, measured), run.name)
