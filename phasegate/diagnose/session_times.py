"""What a server told of itself in stored sessions: its own queue and prefill times of a kind of request.

A session keeps them under ``server.observed``: the parts of TTFT where answers carried them, and the growth of the
counters. A field that is not as `server_metrics.observed` writes it is taken for one that is not there.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phasegate.core.session import Measurement, Session
from phasegate.diagnose.observations import Ask
from phasegate.diagnose.server_times import Span, with_counts
from phasegate.gate.levels import Side
from phasegate.stats.counters import ServerCounts

LABEL = re.compile(r"^(?P<name>.*)\[in=(?P<tokens>\d+),out=(?P<out>\d+)(?:,(?P<role>\w+))?\]$")
"""A cell's name, as `workload.Cell.label` writes it."""

TOLD = ("server_prefill", "server_queue", "server_handoff", "others")


def with_own_times(ask: Ask, side: Side) -> Ask:
    """The request with the medians over the sessions that tell; as it is where none does."""
    told = [_in_session(ask, session) for session in side.sessions]
    medians: dict[str, Any] = {name: _median([getattr(one, name) for one in told]) for name in TOLD}
    return replace(ask, **medians)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _in_session(ask: Ask, session: Session) -> Ask:
    match = LABEL.match(ask.name)
    facts = _mapping(session.server, "observed", match["name"] if match else ask.name)
    parts = _mapping(facts, "first_token", ask.name)
    rows = [one for one in session.measurements if one.metric == "ttft" and _same_workload(one, ask.name)]
    own = next((one for one in rows if one.workload == ask.name), None)
    ask = replace(ask, server_prefill=_number(parts.get("prefill")), server_queue=_number(parts.get("queue")))
    counts = _counts(_mapping(facts, "counted"))
    if own is None or counts is None:
        return ask
    return with_counts(ask, own.samples, counts, Span(sum(one.requests or 0 for one in rows), _alike(rows)))


def _same_workload(one: Measurement, name: str) -> bool:
    first, second = LABEL.match(one.workload), LABEL.match(name)
    return first is not None and second is not None and first["name"] == second["name"]


def _alike(rows: list[Measurement]) -> bool:
    """Whether all prompts of the workload were new to the server and of one length."""
    found = [match for one in rows if (match := LABEL.match(one.workload)) is not None]
    return len({match["tokens"] for match in found}) == 1 and all(match["role"] in (None, "first") for match in found)


def _mapping(facts: Mapping[str, object], *path: str) -> Mapping[str, object]:
    found: object = facts
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: object) -> float | None:
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]


def _counts(facts: Mapping[str, object]) -> ServerCounts | None:
    """The counters as they were; None where the session has none."""
    grown, observed = (
        {name: number for name, value in _mapping(facts, part).items() if (number := _number(value)) is not None}
        for part in ("grown", "observed")
    )
    workers = _number(facts.get("workers"))
    return ServerCounts(grown=grown, observed=observed, workers=int(workers or 1)) if grown else None
