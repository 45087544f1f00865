"""Runs of other tools: what a reader makes of a file, and the sessions they become.

A run is one start of a tool: one load, or several one after the other. Runs of different loads (a sweep) are parts of
one session as long as none of them repeats; repetitions of one load are sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from phasegate.core.session import MEDIANS_ONLY, Measurement, Session
from phasegate.gate.facts import facts_of
from phasegate.store.other_tools.identity import Identity, named
from phasegate.store.other_tools.result import Row, UnreadableResultError, middle_of


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a reader of a result must know of its files: where, and what."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Point:
    """One load of a run: what it asked for, and its measurements, which have no workload's name yet."""

    identity: Identity
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """What one file of another tool holds.

    Attributes:
        run_id: tells the runs of one side apart.
        started: sorts runs by time; empty where the file does not say.
        source: the file, for messages.
        points: one for each load.
        server, client: as in a session.
        remarks: what the file does not hold.
    """

    run_id: str
    started: str
    source: str
    points: tuple[Point, ...]
    server: Mapping[str, Any] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()


ONLY_MEDIANS = "only medians in it: each result counts as one value, and percentiles and objectives cannot be judged"
"""What is said of summaries; what to write instead follows."""

NO_FAILURES = "it does not say how many requests failed, so the error limit cannot be applied"


def point_of_rows(identity: Identity, rows: Sequence[Row], source: str) -> Point:
    """A load from its single requests, failures included.

    The median lengths of the answered requests join what the identity has seen, where it does not know them as asked.

    Raises:
        UnreadableResultError: no request at all.
    """
    if not rows:
        raise UnreadableResultError(f"{source}: no request in it; nothing was measured")
    answered = [row for row in rows if not row.failed]
    failed = len(rows) - len(answered)
    found = []
    for metric in ("ttft", "tpot", "e2el"):
        values = tuple(value for row in answered if (value := getattr(row, metric)) is not None)
        if values or not answered:
            found.append(measurement(metric, values, requests=len(rows), failed=failed))
    if not found:
        raise UnreadableResultError(f"{source}: no request in it has a time; nothing was measured")
    lengths = {
        "in": middle_of(row.prompt_tokens for row in answered),
        "out": middle_of(row.answer_tokens for row in answered),
    }
    seen = {key: value for key, value in lengths.items() if key not in identity.asked}
    return Point(replace(identity, seen={**seen, **identity.seen}), tuple(found))


def point_of_medians(identity: Identity, medians: Mapping[str, float | None], *, answered: int, failed: int) -> Point:
    """A load of which only medians are known; empty where it has none, unless every request failed.

    Args:
        identity: what was asked.
        medians: our short name -> seconds; None where the tool has none.
        answered, failed: numbers of requests.
    """
    flags = (MEDIANS_ONLY,)
    found = [
        measurement(metric, (value,), requests=max(answered, 1) + failed, failed=failed, flags=flags)
        for metric, value in medians.items()
        if value is not None
    ]
    if not found and failed and not answered:
        found = [measurement(metric, (), requests=failed, failed=failed, flags=flags) for metric in medians]
    return Point(identity, tuple(found))


def measurement(
    metric: str, samples: tuple[float, ...], *, requests: int, failed: int, flags: tuple[str, ...] = ()
) -> Measurement:
    """A measurement of a known metric; its workload is named later."""
    facts = facts_of(metric)
    assert facts is not None
    source = "tool" if facts.unit == "s/token" else None
    return Measurement(
        "", facts.name, samples, facts.phase, token_source=source, requests=requests, failed=failed, flags=flags
    )


def sessions_of(sides: Sequence[Sequence[Run]]) -> list[list[Session]]:
    """The sessions of each side, oldest first, their workloads named alike on all sides."""
    names = iter(named([[point.identity for point in run.points] for side in sides for run in side]))
    return [_merged([_session(run, next(names)) for run in side]) for side in sides]


def _session(run: Run, names: Sequence[str]) -> Session:
    found = [
        replace(one, workload=name)
        for name, point in zip(names, run.points, strict=True)
        for one in point.measurements
    ]  # fmt: skip
    return Session(run.run_id, run.started, tuple(found), server=run.server, client=run.client)


def _merged(runs: Sequence[Session]) -> list[Session]:
    """Runs of different workloads of one server, put together; each into the first session that lacks its workloads."""
    made: list[list[Session]] = []
    for run in sorted(runs, key=lambda one: one.recorded_at):
        for parts in made:
            if run.server == parts[0].server and not _workloads([run]) & _workloads(parts):
                parts.append(run)
                break
        else:
            made.append([run])
    return [_put_together(parts) for parts in made]


def _workloads(parts: Sequence[Session]) -> set[str]:
    return {one.workload for part in parts for one in part.measurements}


def _put_together(parts: Sequence[Session]) -> Session:
    if len(parts) == 1:
        return parts[0]
    name = f"{parts[0].session_id} and {len(parts) - 1} more"
    return replace(
        parts[0], session_id=name, measurements=tuple(one for part in parts for one in part.measurements)
    )  # fmt: skip


def remarks_of(remarks: Sequence[Remark]) -> list[str]:
    """One line for each thing said, however many files it is said of."""
    places: dict[str, list[str]] = {}
    for one in remarks:
        places.setdefault(one.text, []).append(one.where)
    return [f"{where[0]}{f' and {len(where) - 1} more' * (len(where) > 1)}: {text}" for text, where in places.items()]


def repeated(runs: Sequence[Run]) -> Iterator[Remark]:
    """A remark for every run that holds the same values as an earlier one of its side."""
    seen: dict[tuple[Any, ...], str] = {}
    for run in runs:
        values = tuple((one.metric, one.samples) for point in run.points for one in point.measurements)
        first = seen.setdefault(values, run.source)
        if first != run.source and any(samples for _, samples in values):
            yield Remark(run.source, f"it holds the same values as {first}; one run given twice proves nothing more")


def few_spans(runs: Sequence[Run]) -> Iterator[Remark]:
    """A remark for every run in which most requests have no time per token, because each came in one chunk."""
    for run in runs:
        for point in run.points:
            answered = {one.metric: len(one.samples) for one in point.measurements if MEDIANS_ONLY not in one.flags}
            if "tpot" in answered and answered["tpot"] < answered.get("ttft", 0) / 2:
                said = "most requests have no time per token (their tokens came in one chunk), so tpot speaks for few"
                yield Remark(run.source, said)
