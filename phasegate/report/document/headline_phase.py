"""Which phase got slower, from the rows that the gate proved: what a title may say, and on which row it rests.

A whole request takes longer because a phase does, and TTFT has one step of decode in it, that of the first token. So
neither a row of whole requests nor a TTFT that grew by about one step names a phase: the rows of the phases do.
"""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.gate.diagnose.thresholds import READING_SHARE
from phasegate.report.document.headline_parts import PHASE_WORDS
from phasegate.report.document.model import Row

SLOWER = "got slower"

REQUESTS = "Whole requests"
"""Named in place of a phase where no row proves one."""


def slower_phase(rows: Sequence[Row], every: Sequence[Row]) -> tuple[str, str]:
    """The phase that got slower, and how a title names it.

    Args:
        rows: gated rows that are regressions, at least one.
        every: all rows of the gate; those that only inform tell the phase where the gated ones are of whole requests.
    """
    phases = {_phase(row, every) for row in rows} - {"both"}
    if not phases:
        known = {row.workload for row in rows}
        informing = [row for row in every if row.workload in known and row.verdict == "REGRESSION"]
        phases = {_phase(row, every) for row in informing} - {"both"}
    if not phases:
        return "both", REQUESTS
    phase = phases.pop() if len(phases) == 1 else "both"
    return phase, PHASE_WORDS[phase]


def own_rows(rows: Sequence[Row], every: Sequence[Row]) -> list[Row]:
    """The rows that are not explained by another phase's."""
    return [row for row in rows if _phase(row, every) == row.phase]


def _phase(row: Row, every: Sequence[Row]) -> str:
    """The row's phase; decode of a TTFT that grew by about a step of decode, which was proven slower itself."""
    if row.metric.split(":")[0] != "ttft":
        return row.phase
    steps = [one for one in every if (one.workload, one.metric, one.verdict) == (row.workload, "tpot", "REGRESSION")]
    step = max(map(_grown, steps), default=0.0)
    return row.phase if _grown(row) - step >= READING_SHARE * _grown(row) else "decode"


def _grown(row: Row) -> float:
    """Seconds by which a row grew; 0.0 where a side is not known."""
    known = row.baseline_value is not None and row.candidate_value is not None
    return (row.candidate_value or 0.0) - (row.baseline_value or 0.0) if known else 0.0
