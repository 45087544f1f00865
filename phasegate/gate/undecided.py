"""Which of several undecided rows to tell of: the one that needs the most, since what decides it decides them all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, TypeVar


class OpenRow(Protocol):
    """An undecided row of the gate, or the same row in a report: fields as of a `gate.verdict.Finding`."""

    @property
    def mde(self) -> float | None: ...
    @property
    def tolerance(self) -> float | None: ...
    @property
    def sessions_needed(self) -> int | None: ...
    @property
    def baseline_needed(self) -> int | None: ...


AnyRow = TypeVar("AnyRow", bound=OpenRow)


def hardest(rows: Sequence[AnyRow]) -> AnyRow:
    """The row that no number of sessions decides, else the one that needs the most of them.

    More of a baseline is harder to come by than more of the candidate: the old server may be gone. Of rows that need
    the same, it is the one that would find the least beside what it must.

    Raises:
        ValueError: there is none.
    """
    return max(rows, key=_need)


def _need(row: OpenRow) -> tuple[bool, int, int, float]:
    without_number = row.sessions_needed is None and row.baseline_needed is None
    blind = math.inf if row.mde is None or not row.tolerance else row.mde / row.tolerance
    return without_number, row.baseline_needed or 0, row.sessions_needed or 0, blind


def needed_besides(told: OpenRow, rows: Sequence[OpenRow], unit: str) -> str:
    """What other rows need that does not go without saying, in a clause; empty where the told row's remedy covers it.

    ``unit`` is what carries the evidence: ``session`` or ``block``.
    """
    wanted = []
    candidate = max((row.sessions_needed or 0 for row in rows), default=0)
    if candidate > (told.sessions_needed or 0):
        wanted.append(
            f"{candidate} more {unit if unit == 'block' else f'candidate {unit}'}{'s' if candidate > 1 else ''}"
        )
    baseline = max((row.baseline_needed or 0 for row in rows), default=0)
    if baseline > (told.baseline_needed or 0):
        wanted.append(f"{baseline} more baseline {unit}{'s' if baseline > 1 else ''}")
    return f"others need up to {' and '.join(wanted)}" if wanted else ""
