"""Where a slower request lost its time: its change in milliseconds, apportioned to the phases.

``e2el = ttft + (n - 1) tpot``, so the change of a request is the change of its time to first token plus the change of
its decode span. And a word of doubt: what slows everything alike is the host, the client, or a change of the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from phasegate.gate.binding import output_length
from phasegate.gate.levels import Side
from phasegate.gate.verdict import Finding, Verdict
from phasegate.units import format_percent, format_seconds

ALIKE = 0.5
"""Changes are "alike" where the smallest is at least this share of the largest, as log ratios."""


def attribute(baseline: Side, candidate: Side, workload: str) -> str | None:
    """One sentence that spreads a request's change over prefill and decode; None where it is not known."""
    spans = [_spans(side, workload) for side in (baseline, candidate)]
    if spans[0] is None or spans[1] is None:
        return None
    prefill, decode = (new - old for old, new in zip(spans[0], spans[1], strict=True))
    total, before = prefill + decode, sum(spans[0])
    word = "longer" if total >= 0 else "shorter"
    return (
        f"{workload}: a request takes {format_seconds(abs(total))} {word} "
        f"({format_percent(total / before, signed=True)} of {format_seconds(before)}): "
        f"prefill {_signed(prefill)}, decode {_signed(decode)}"
    )


def _spans(side: Side, workload: str) -> tuple[float, float] | None:
    """(prefill, decode) seconds of a median request."""
    ttft, e2el = side.level((workload, "ttft")), side.level((workload, "e2el"))
    tpot, length = side.level((workload, "tpot")), output_length(workload)
    if ttft and tpot and length:
        return ttft, (length - 1) * tpot
    if ttft and e2el and e2el >= ttft:
        return ttft, e2el - ttft
    return None


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{format_seconds(abs(seconds))}"


def moved_together(findings: Sequence[Finding]) -> str | None:
    """A warning where all workloads and both phases got slower alike, else None.

    Asked of the rows that compare medians. Needs two workloads and both phases: with less, there is no "all".
    """
    shifts = [
        (finding, math.log(finding.ratio))
        for finding in findings
        if finding.ratio is not None and finding.ratio > 0 and ":" not in finding.metric and finding.phase != "both"
    ]
    phases = {finding.phase for finding, _ in shifts}
    workloads = {finding.workload for finding, _ in shifts}
    worse = [abs(shift) for finding, shift in shifts if finding.verdict is Verdict.REGRESSION]
    if len(phases) < 2 or len(workloads) < 2 or len(worse) < len(shifts) or min(worse) < ALIKE * max(worse):
        return None
    return (
        f"all {len(workloads)} workloads and both phases got slower alike ({format_percent(math.expm1(min(worse)))} to "
        f"{format_percent(math.expm1(max(worse)))}): host or client, or a change of the whole model; measure again, "
        "best against the old server in the same run"
    )
