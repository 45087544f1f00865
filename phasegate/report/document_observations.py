"""The situation in a report document: what a finished run wrote into its JSON, as the diagnosis takes it.

A document keeps medians by cell and percentiles by level, no single request: gaps before the second token and tokens a
step are not in it and stay unmeasured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phasegate.diagnose import Ask, CacheCalls, Level, Observations
from phasegate.diagnose.codec import possible_figure
from phasegate.diagnose.from_runs import AGAIN, FIRST_ROLES, limits_of
from phasegate.gate.slo import Objective
from phasegate.report.document.model import CellRow, Document, Estimate, LevelRow, WorkloadTable


def observations_of_document(
    document: Document, objectives: Iterable[Objective] = (), source: str = "report"
) -> Observations:
    """What a run measured; objectives of the run itself count where none are given.

    Args:
        source: the document's file, for messages.

    Raises:
        UnreadableObservationsError: a figure that cannot have been measured; one line naming its key.
    """
    wanted = list(objectives) or list(_objectives(document, f"{source}.load.objectives"))
    levels = document.load.levels if document.load is not None else ()
    tables = [(table, f"{source}.workloads[{number}]") for number, table in enumerate(document.workloads)]
    read = [_level(one, f"{source}.load.levels[{number}]") for number, one in enumerate(levels) if not one.by_rate]
    return Observations(
        asks=tuple(
            _ask(cell, where) for table, at in tables for cell, where in _cells(table, at) if cell.role in FIRST_ROLES
        ),
        levels=tuple(sorted(read, key=lambda one: one.users)),
        caches=tuple(calls for table, where in tables for calls in _calls(table, where)),
        limits=limits_of(wanted),
    )


def _objectives(document: Document, where: str) -> Iterator[Objective]:
    for number, one in enumerate(document.load.objectives if document.load is not None else ()):
        limit = possible_figure(one.limit, f"{where}[{number}].limit")
        yield Objective(one.metric, one.percentile, limit, source=one.source)


def _median(estimate: Estimate | None, where: str) -> float | None:
    if estimate is None or estimate.value is None:
        return None
    return possible_figure(estimate.value, f"{where}.value")


def _cells(table: WorkloadTable, where: str) -> Iterator[tuple[CellRow, str]]:
    """Each cell with its place in the document."""
    return ((cell, f"{where}.cells[{number}]") for number, cell in enumerate(table.cells))


def _ask(cell: CellRow, where: str) -> Ask:
    return Ask(
        name=cell.label,
        prompt_tokens=int(possible_figure(cell.input_tokens, f"{where}.input_tokens")),
        output_tokens=float(possible_figure(cell.output_tokens, f"{where}.output_tokens")),
        ttft=_median(cell.ttft, f"{where}.ttft"),
        tpot=_median(cell.tpot, f"{where}.tpot"),
        total=_median(cell.e2el, f"{where}.e2el"),
    )


def _level(row: LevelRow, where: str) -> Level:
    values = {
        metric: _median(found.get("p50"), f"{where}.percentiles.{metric}.p50")
        for metric, found in row.percentiles.items()
    }
    return Level(
        users=possible_figure(row.level, f"{where}.level", above_zero=True),
        ttft=values.get("ttft"),
        tpot=values.get("tpot"),
        total=values.get("e2el"),
        token_rate=possible_figure(row.token_rate, f"{where}.token_rate"),
    )


def _calls(table: WorkloadTable, where: str) -> Iterator[CacheCalls]:
    """A cold call and its repetition; where only a part is shared, its length is not kept, so nothing is said."""
    by_role = {(cell.input_tokens, cell.output_tokens, cell.role): (cell, at) for cell, at in _cells(table, where)}
    for cell, at in _cells(table, where):
        found = by_role.get((cell.input_tokens, cell.output_tokens, AGAIN["cold"])) if cell.role == "cold" else None
        if found is None:
            continue
        again, there = found
        first, second = _median(cell.ttft, f"{at}.ttft"), _median(again.ttft, f"{there}.ttft")
        if first and second:
            tokens = int(possible_figure(cell.input_tokens, f"{at}.input_tokens", above_zero=True))
            cached = again.cached_tokens
            if cached is not None:
                cached = possible_figure(cached, f"{there}.cached_tokens")
            yield CacheCalls(cell.label, tokens, tokens, first, second, cached_tokens=cached)
