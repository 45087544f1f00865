"""What was measured under load, in the document: levels, objectives, and where each objective breaks."""

from __future__ import annotations

from collections.abc import Sequence

from phasegate.gate.facts import facts_of
from phasegate.gate.slo import Objective
from phasegate.gate.slo_search import Limit
from phasegate.gate.slo_share import Kept, attained
from phasegate.measure.load_runner import LoadRunner
from phasegate.report.document.from_server import counted_of
from phasegate.report.document.model import Estimate, LevelRow, LimitRow, Load, ObjectiveRow
from phasegate.report.document.numbers import estimate
from phasegate.report.load_tables import all_stall_lines, batching_lines, level_notes
from phasegate.stats.level_run import LevelRun, ended_well

METRICS = ("ttft", "tpot", "e2el")

PERCENTS = (50.0, 90.0, 95.0, 99.0)


def load_of(load: LoadRunner, objectives: Sequence[Objective], judged: Sequence[Kept]) -> Load | None:
    """The load as the document keeps it; None where nothing was measured."""
    if load.empty:
        return None
    users = [run for _, run in sorted({**load.searched, **load.levels}.items())]
    rates = [run for _, run in sorted(load.rates.items())]
    levels = [run for _, run in sorted(load.levels.items())]
    return Load(
        levels=tuple(_level(run, objectives) for run in (*users, *rates)),
        objectives=tuple(_objective(one) for one in judged),
        limits=tuple(_limit(one) for one in load.found),
        said=(*batching_lines(levels), *all_stall_lines(load)),
    )


def _level(run: LevelRun, objectives: Sequence[Objective]) -> LevelRow:
    wanted = sorted({*PERCENTS, *(one.percentile for one in objectives)})
    return LevelRow(
        level=run.level,
        name=run.name,
        by_rate=run.by_rate,
        sent=run.sent,
        failed=dict(run.failures()),
        percentiles={metric: _percentiles(run, metric, wanted) for metric in METRICS},
        token_rate=run.token_rate,
        request_rate=run.request_rate,
        attained=attained(objectives, run) / run.sent if objectives and run.sent else None,
        remarks=tuple(level_notes([run])),
        server=counted_of(run.server, sum(map(ended_well, run.timelines)), run.window),
    )


def _percentiles(run: LevelRun, metric: str, wanted: Sequence[float]) -> dict[str, Estimate]:
    found = {f"p{percent:g}": estimate(run.percentile(metric, percent)) for percent in wanted}
    return {name: one for name, one in found.items() if one is not None}


def _objective(kept: Kept) -> ObjectiveRow:
    facts = facts_of(kept.objective.metric)
    missed = kept.missed
    return ObjectiveRow(
        objective=kept.objective.text,
        metric=kept.objective.metric,
        percentile=kept.objective.percentile,
        limit=kept.objective.limit,
        phase=facts.phase if facts is not None else "both",
        level=kept.level,
        verdict=kept.verdict.value,
        reason=kept.reason,
        missed=None if missed is None else missed.share,
        missed_low=None if missed is None else missed.low,
        missed_high=None if missed is None else missed.high,
        source=kept.objective.source,
    )


def _limit(limit: Limit) -> LimitRow:
    cause = limit.cause
    return LimitRow(
        objective=limit.objective.text,
        text=limit.text,
        by_rate=limit.by_rate,
        kept=limit.kept,
        broken=limit.broken,
        cause=None if cause is None else cause.cause.value,
        cause_reason="" if cause is None else cause.reason,
    )
