"""Where a slower request lost its time: its change in milliseconds, apportioned to the phases.

``e2el = ttft + (n - 1) tpot``, so the change of a request is the change of its time to first token plus the change of
its decode span.
"""

from __future__ import annotations

from phasegate.gate.binding import output_length
from phasegate.gate.levels import Side
from phasegate.units import format_percent, format_seconds


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
