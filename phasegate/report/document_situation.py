"""The situation in a report document: what a finished run wrote into its JSON, as the diagnosis takes it.

A document keeps medians by cell and percentiles by level, no single request: gaps before the second token and tokens a
step are not in it and stay unmeasured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from phasegate.gate.diagnose import Ask, CacheCalls, Level, Situation
from phasegate.gate.diagnose.from_runs import AGAIN, FIRST_ROLES, limits_of
from phasegate.gate.slo import Objective
from phasegate.report.document.model import CellRow, Document, Estimate, LevelRow, WorkloadTable


def situation_of_document(document: Document, objectives: Iterable[Objective] = ()) -> Situation:
    """What a run measured; objectives of the run itself count where none are given."""
    wanted = list(objectives) or list(_objectives(document))
    levels = document.load.levels if document.load is not None else ()
    return Situation(
        asks=tuple(
            _ask(cell) for table in document.workloads for cell in table.cells if cell.role in FIRST_ROLES
        ),
        levels=tuple(_level(one) for one in sorted(levels, key=lambda one: one.level) if not one.by_rate),
        caches=tuple(calls for table in document.workloads for calls in _calls(table)),
        limits=limits_of(wanted),
    )  # fmt: skip


def _objectives(document: Document) -> Iterator[Objective]:
    for one in document.load.objectives if document.load is not None else ():
        yield Objective(one.metric, one.percentile, one.limit, source=one.source)


def _median(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _ask(cell: CellRow) -> Ask:
    return Ask(
        name=cell.label,
        prompt_tokens=cell.input_tokens,
        output_tokens=float(cell.output_tokens),
        ttft=_median(cell.ttft),
        tpot=_median(cell.tpot),
        total=_median(cell.e2el),
    )


def _level(row: LevelRow) -> Level:
    values = {metric: _median(found.get("p50")) for metric, found in row.percentiles.items()}
    return Level(
        users=row.level,
        ttft=values.get("ttft"),
        tpot=values.get("tpot"),
        total=values.get("e2el"),
        token_rate=row.token_rate,
    )


def _calls(table: WorkloadTable) -> Iterator[CacheCalls]:
    """A cold call and its repetition; where only a part is shared, its length is not kept, so nothing is said."""
    by_role = {(cell.input_tokens, cell.output_tokens, cell.role): cell for cell in table.cells}
    for cell in table.cells:
        again = by_role.get((cell.input_tokens, cell.output_tokens, AGAIN["cold"])) if cell.role == "cold" else None
        first, second = _median(cell.ttft), _median(again.ttft) if again is not None else None
        if again is not None and first and second:
            tokens = cell.input_tokens
            yield CacheCalls(cell.label, tokens, tokens, first, second, cached_tokens=again.cached_tokens)
