"""The sentence of a whole build: the row that tells most of its word, and what a reader must not miss beside it."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.gate.slower_phase import leading_row
from phasegate.gate.trade import trade_words
from phasegate.gate.undecided import hardest, needed_besides
from phasegate.gate.verdict import Finding, Verdict


def headline(verdict: Verdict, gated: Sequence[Finding], every: Sequence[Finding], unit: str = "session") -> str:
    """The sentence of a row of the build's word, and how many others there are of its kind.

    Args:
        verdict: the build's word.
        gated: rows that decide it, worst first.
        every: these and those that only inform.
        unit: what carries the evidence: ``session`` or ``block``.
    """
    alike = [row for row in gated if row.verdict is verdict]
    if not alike:
        return "no comparison gates this build; see gate and rules in the policy"
    if verdict.green:
        trade = trade_words(every)
        said = f"{len(gated)} of {len(gated)} gated comparisons within their limits"
        return f"{said}; a trade: {trade}" if trade else said
    told = _told(verdict, alike, every)
    others = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
    return " ".join([f"{told.reason}{others}.", *_beside(verdict, told, gated, every, unit)])


def _told(verdict: Verdict, alike: Sequence[Finding], every: Sequence[Finding]) -> Finding:
    if verdict is Verdict.REGRESSION:
        return leading_row(alike, every)
    return hardest(alike) if verdict is Verdict.INCONCLUSIVE else alike[0]


def _beside(
    verdict: Verdict, told: Finding, gated: Sequence[Finding], every: Sequence[Finding], unit: str
) -> list[str]:
    """Sentences that belong to that of the told row."""
    said = []
    if verdict is Verdict.REGRESSION:
        trade = trade_words(every, told.workload)
        said += [f"This is a trade: {trade}."] if trade else []
    else:
        hidden = sum(1 for row in gated if row.verdict is Verdict.REGRESSION)
        said += [f"Also {hidden} proven regression{'s' if hidden > 1 else ''} among the rest."] if hidden else []
    if verdict is Verdict.INCONCLUSIVE:
        more = needed_besides(told, [row for row in gated if row.verdict is verdict], unit)
        said += [f"{more[0].upper()}{more[1:]}."] if more else []
    return said
