"""A regression that the client may have made itself: it was slower this time than when the baseline was recorded.

Sessions keep what the client added to a latency at a server of known timing (`client_error.OwnError`), one request at a
time. What it adds on both sides alike cancels; what it adds more than then looks like a slower server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from phasegate.core.session import Session
from phasegate.core.units import format_percent, format_seconds
from phasegate.gate.verdict import Finding, Verdict
from phasegate.stats.client_error import FIRST_TOKEN, MATERIAL, WHOLE

OWN_ERROR = "own_error"
"""The fact of a session's client that lists calibrations (`load.own_error.Calibrations.as_json`)."""


def unless_the_client(row: Finding, baseline: Sequence[Session], candidate: Sequence[Session]) -> Finding:
    """The row, or INVALID_RUN for a regression of which the client's own growth is a material share.

    The growth is held against the worsening that was found, or against what the row allows where that is more. TPOT is
    left alone, since a client that is late by the same for every token does not move it; so are sessions that do not
    tell.
    """
    metric = row.metric.split(":")[0]
    if row.verdict is not Verdict.REGRESSION or not row.baseline_value or row.candidate_value is None:
        return row
    before, now = (_added(metric, sessions) for sessions in (baseline, candidate))
    slower = max(row.candidate_value - row.baseline_value, (row.tolerance or 0.0) * row.baseline_value)
    if before is None or now is None or now - before <= MATERIAL * slower:
        return row
    return replace(
        row,
        verdict=Verdict.INVALID_RUN,
        reason=(
            f"{row.reason}; but the client itself adds {format_seconds(now)} to {metric} and added "
            f"{format_seconds(before)} for the baseline: more than {format_percent(MATERIAL, digits=0)} of the "
            f"{format_seconds(slower)} in question"
        ),
        advice="give the client a core of its own and measure again, or record the baseline anew from this client",
    )


def tells_own_error(sessions: Sequence[Session]) -> bool:
    """Whether any session knows its client's own error."""
    return _added("ttft", sessions) is not None


def _added(metric: str, sessions: Sequence[Session]) -> float | None:
    """Seconds that the client added to a latency, median over the sessions that tell; None where none does."""
    names = ("ttft_p50",) if metric in FIRST_TOKEN else ("ttft_p50", "span_p50") if metric in WHOLE else ()
    found = [value for one in sessions if (value := _of_one(one, names)) is not None]
    return median(found) if found else None


def _of_one(session: Session, names: Sequence[str]) -> float | None:
    listed = session.client.get(OWN_ERROR)
    for one in listed if isinstance(listed, (list, tuple)) else ():
        if isinstance(one, Mapping) and one.get("concurrency") == 1 and names:
            values = [_number(one.get(name)) for name in names]
            return None if None in values else sum(value or 0.0 for value in values)
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
