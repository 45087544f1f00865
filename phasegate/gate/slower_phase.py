"""Which phase got slower, from the rows that the gate proved: one answer for its sentence, its lever and the report.

A whole request takes longer because a phase does, and TTFT has one step of decode in it, that of the first token; where
requests are batched, a new one may wait for a running step as well. So neither a row of whole requests nor a TTFT that
grew by a step or two names a phase of its own: the rows of the phases do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

PREFILL, DECODE, BOTH = "prefill", "decode", "both"

PROVEN = "REGRESSION"

OWN_SHARE = 0.5
"""Part of TTFT's growth that must be left when the growth of a step of decode is taken off, for it to be prefill's own.
A diagnosis asks for the same (``diagnose.thresholds.READING_SHARE``)."""


class JudgedRow(Protocol):
    """A row of the gate, or the same row in a report: fields as of a `gate.verdict.Finding`."""

    @property
    def workload(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def phase(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def ratio(self) -> float | None: ...
    @property
    def tolerance(self) -> float | None: ...
    @property
    def baseline_value(self) -> float | None: ...
    @property
    def candidate_value(self) -> float | None: ...


AnyRow = TypeVar("AnyRow", bound=JudgedRow)


def slower_phases(rows: Sequence[JudgedRow], every: Sequence[JudgedRow]) -> frozenset[str]:
    """The phases that got slower: ``prefill``, ``decode``, both of them, or none where only whole requests did.

    Args:
        rows: gated rows that broke their limit.
        every: all rows of the gate; those that only inform tell the phase where the gated ones are of whole requests.
    """
    phases = {cause(row, every) for row in rows} - {BOTH}
    if not phases:
        known = {row.workload for row in rows}
        informing = [row for row in every if row.workload in known and row.verdict == PROVEN]
        phases = {cause(row, every) for row in informing} - {BOTH}
    return frozenset(phases)


def slower_phase(rows: Sequence[JudgedRow], every: Sequence[JudgedRow]) -> str:
    """The one phase that got slower; ``both`` where two did, or where no row proves one. Arguments as above."""
    phases = slower_phases(rows, every)
    return next(iter(phases)) if len(phases) == 1 else BOTH


def leading_row(rows: Sequence[AnyRow], every: Sequence[JudgedRow]) -> AnyRow:
    """The row to tell of several that got slower: furthest beyond its tolerance, of those that no other phase explains.

    Raises:
        ValueError: there is none.
    """
    own = [row for row in rows if cause(row, every) == row.phase]
    return max(own or rows, key=_excess)


def cause(row: JudgedRow, every: Sequence[JudgedRow]) -> str:
    """The phase behind a row: its own, or decode where proven slower steps of decode explain a later first token.

    A TTFT is explained where less than half of its growth is left when the growth of one step is taken off. A first
    output token waits for the reasoning before it too, which is decode: slower steps explain it unless TTFT is proven
    to have grown beyond them.
    """
    name, _, label = row.metric.partition(":")
    if name == "ttft":
        grown, step = _grown(row), _step(row.workload, label, every)
        return DECODE if step > 0.0 and grown > 0.0 and grown - step < OWN_SHARE * grown else row.phase
    if name == "ttfo" and _step(row.workload, label, every) > 0.0:
        starts = _proven(row.workload, "ttft", label, every)
        return row.phase if any(cause(one, every) != DECODE for one in starts) else DECODE
    return row.phase


def _step(workload: str, label: str, every: Sequence[JudgedRow]) -> float:
    """Seconds by which a step of decode is proven to have grown; 0.0 where it is not."""
    return max(map(_grown, _proven(workload, "tpot", label, every)), default=0.0)


def _proven(workload: str, name: str, label: str, every: Sequence[JudgedRow]) -> list[JudgedRow]:
    """A workload's rows of a metric that are regressions: that of the median, and that of a percentile's ``label``."""
    wanted = {name, f"{name}:{label}"}
    return [one for one in every if one.workload == workload and one.metric in wanted and one.verdict == PROVEN]


def _grown(row: JudgedRow) -> float:
    """Seconds by which a row grew; 0.0 where a side is not known."""
    if row.baseline_value is None or row.candidate_value is None:
        return 0.0
    return row.candidate_value - row.baseline_value


def _excess(row: JudgedRow) -> float:
    """How far a row that got worse is beyond its tolerance, as a fraction; rates fall where times rise."""
    if not row.ratio:
        return 0.0
    return max(row.ratio, 1.0 / row.ratio) - 1.0 - (row.tolerance or 0.0)
