"""How a title names the phase that got slower; which one that is, the gate says (`gate.slower_phase`)."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.gate.slower_phase import slower_phases
from phasegate.report.document.headline_parts import PHASE_WORDS
from phasegate.report.document.model import Row

SLOWER = "got slower"

REQUESTS = "Whole requests"
"""Named in place of a phase where no row proves one."""


def named_phase(rows: Sequence[Row], every: Sequence[Row]) -> tuple[str, str]:
    """The phase that got slower, and how a title names it.

    Args:
        rows: gated rows that are regressions, at least one.
        every: all rows of the gate; those that only inform tell the phase where the gated ones are of whole requests.
    """
    phases = slower_phases(rows, every)
    if not phases:
        return "both", REQUESTS
    phase = next(iter(phases)) if len(phases) == 1 else "both"
    return phase, PHASE_WORDS[phase]
