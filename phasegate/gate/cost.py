"""A phase that does not bind, and yet costs every request dearly: it gates after all.

The binding phase is decided from the baseline. A change may make the other phase matter: with its prefix cache
switched off, a server that was bound by decode keeps its users waiting for prefill. So a regression of a phase that
does not bind decides the build where it alone makes the whole request longer than the policy tolerates for whole
requests. Its evidence has to be far beyond doubt, since these rows share nothing of the build's chance of a false
alarm: over all of them together, they may add a tenth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phasegate.gate.binding import prefill_share
from phasegate.gate.levels import Side
from phasegate.gate.policy import Policy
from phasegate.gate.question import MEDIAN, Question
from phasegate.gate.verdict import Finding, Verdict
from phasegate.units import format_percent

ADDED_ALARMS = 0.1
"""The part of alpha that all rows of phases that do not bind may add to a build's chance of a false alarm."""

PARTS = ("ttft", "tpot")
"""The metrics that a whole request is made of."""


def gate_what_costs(
    asked: Sequence[Question], rows: Sequence[Finding], baseline: Side, policy: Policy
) -> tuple[Finding, ...]:
    """The rows, those gated that only warned but make a whole request too long. Both lists are in one order."""
    allowed = ADDED_ALARMS * policy.alpha / max(1, len(rows))
    return tuple(_weigh(question, row, allowed, baseline, policy) for question, row in zip(asked, rows, strict=True))


def _weigh(question: Question, row: Finding, allowed: float, baseline: Side, policy: Policy) -> Finding:
    proven = row.verdict is Verdict.REGRESSION and row.p is not None and row.p <= allowed
    if row.gated or not proven or not _is_part(question):
        return row
    tolerated = policy.applied(question.workload, "request_latency", "both").tolerance.value
    longer = _longer(row, baseline)
    if longer is None or longer <= tolerated:
        return row
    why = (
        f"; {row.phase} does not bind this workload, but by this alone a request takes at least "
        f"{format_percent(longer)} longer ({format_percent(tolerated)} are tolerated)"
    )
    return replace(row, gated=True, reason=row.reason + why)


def _is_part(question: Question) -> bool:
    """Whether it asks for the median of a part of every request whose weight the policy left to the binding phase."""
    left_open = question.applied.gate.value == "binding"
    return left_open and question.facts.name in PARTS and question.percentile == MEDIAN


def _longer(row: Finding, baseline: Side) -> float | None:
    """The least by which a request got longer through this row's phase, as a fraction; None where it is not known."""
    share = prefill_share(baseline, row.workload)
    if share is None or row.ratio_low is None:
        return None
    return (row.ratio_low - 1.0) * (share if row.metric == "ttft" else 1.0 - share)
