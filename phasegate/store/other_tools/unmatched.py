"""Metrics that only one of two sides can have: summaries leave out what their tool was not asked to sum up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from phasegate.core.session import MEDIANS_ONLY, Session


def matched(old: Sequence[Session], new: Sequence[Session]) -> tuple[list[Session], list[Session], list[str]]:
    """Both sides without the metrics that the other side's summaries lack, and a remark for each such metric.

    A metric that single requests lack stays: there it was not measured, which is a fault of the run.
    """
    left, right = _summed_up(old), _summed_up(new)
    lost = list(_lost(left, new)) + list(_lost(right, old))
    said = [
        f"{metric} of {workload} is not compared: the medians of {side} do not include it"
        for side, summed, other in (("the baseline", left, new), ("the run", right, old))
        for workload, metric in _lost(summed, other)
    ]
    return _without(old, lost), _without(new, lost), said


def _summed_up(sessions: Sequence[Session]) -> dict[str, set[str]]:
    """Workload -> its metrics, of workloads of which only medians are known."""
    found: dict[str, set[str]] = {}
    for one in (one for session in sessions for one in session.measurements if MEDIANS_ONLY in one.flags):
        found.setdefault(one.workload, set()).add(one.metric)
    return found


def _lost(summed: dict[str, set[str]], other: Sequence[Session]) -> Iterator[tuple[str, str]]:
    keys = dict.fromkeys((one.workload, one.metric) for session in other for one in session.measurements)
    return (key for key in keys if key[0] in summed and key[1] not in summed[key[0]])


def _without(sessions: Sequence[Session], lost: Sequence[tuple[str, str]]) -> list[Session]:
    return [
        replace(one, measurements=tuple(row for row in one.measurements if (row.workload, row.metric) not in lost))
        for one in sessions
    ]
