"""Where a slower request lost its time: its change in milliseconds, apportioned to the phases.

``e2el = ttft + (n - 1) tpot``, so the change of a request is the change of its time to first token plus the change of
its decode span. The first token takes a step of decode too: what a slower step adds to TTFT is decode's.
"""

from __future__ import annotations

from dataclasses import dataclass

from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.binding import output_length
from phasegate.gate.levels import Side

TOLD_SHARE = 0.1
"""The first token's own step is told where it is more than a tenth of what TTFT grew by."""


@dataclass(frozen=True, slots=True)
class _Spans:
    """A median request, seconds: to its first token, from there to its last, and a step of decode (0.0 if unknown)."""

    first: float
    rest: float
    step: float


def attribute(baseline: Side, candidate: Side, workload: str) -> str | None:
    """One sentence that spreads a request's change over prefill and decode; None where it is not known."""
    old, new = (_spans(side, workload) for side in (baseline, candidate))
    if old is None or new is None:
        return None
    first, rest = new.first - old.first, new.rest - old.rest
    # Only growth is explained so: of a TTFT that stayed, a slower step takes nothing away.
    step = max(0.0, min(first, new.step - old.step)) if old.step and new.step else 0.0
    total, before = first + rest, old.first + old.rest
    word = "longer" if total >= 0 else "shorter"
    own = f", {format_seconds(step)} of it in the first token's own step" if step > TOLD_SHARE * abs(first) else ""
    return (
        f"{workload}: a request takes {format_seconds(abs(total))} {word} "
        f"({format_percent(total / before, signed=True)} of {format_seconds(before)}): "
        f"prefill {_signed(first - step)}, decode {_signed(rest + step)}{own}"
    )


def _spans(side: Side, workload: str) -> _Spans | None:
    ttft, e2el = side.level((workload, "ttft")), side.level((workload, "e2el"))
    tpot, length = side.level((workload, "tpot")), output_length(workload)
    if ttft and tpot and length:
        return _Spans(ttft, (length - 1) * tpot, tpot)
    if ttft and e2el and e2el >= ttft:
        return _Spans(ttft, e2el - ttft, tpot or 0.0)
    return None


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{format_seconds(abs(seconds))}"
