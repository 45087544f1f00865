"""What one workload measured in one session, ready for statistics: values by cell and block.

A value enters a sample only when its request ended well and nothing marks it as unfit (a cached prompt in a cold
workload, a buffered stream, a wrong prompt length). The others are counted, by reason, and never forgotten.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phasegate.core.metric import Metric, Undefined, inter_chunk_latencies, metric_named, own_metrics
from phasegate.core.session import Measurement
from phasegate.core.timeline import Timeline
from phasegate.core.workload import Cell, Planned, Workload
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_event import FirstEvent, first_event_of
from phasegate.stats.summary import MAX_ERROR_RATE
from phasegate.wire.answer_words import other_prompt_words, share_of_other_prompts
from phasegate.wire.count_words import disproof_words, mostly_disproved
from phasegate.wire.openai_stream import UNFIT, UNFIT_COLD


@dataclass(frozen=True, slots=True)
class Measured:
    """One request of the plan and what became of it."""

    planned: Planned
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """All measured requests of one workload in one session, warm-ups apart.

    Attributes:
        workload: what was asked, with its endpoint filled in.
        measured: requests in the order in which they were sent.
        warmups: warm-up requests; never part of a sample.
        partial: True when the user stopped the run before the plan was done.
        gone: True when the server could not be reached any more, so that the rest of the plan was not sent.
        cut: which limit of the run (time, tokens) ended it before the plan was done, in one line; None for none.
        notes: remarks of the client about itself (event-loop lag, missed load), for the report.
        server: what the server counted meanwhile; None where it does not tell.
        unmarked: why the API caches nothing of requests without a mark; empty where it may, or where they have one.
        too_short: why it caches no beginning as short as these; empty where it may.
        disturbed: what else the engine's host did meanwhile that puts the run in doubt; None where nothing is known.
    """

    workload: Workload
    measured: tuple[Measured, ...]
    warmups: tuple[Measured, ...] = ()
    partial: bool = False
    gone: bool = False
    cut: str | None = None
    notes: tuple[str, ...] = ()
    server: ServerCounts | None = None
    unmarked: str = ""
    too_short: str = ""
    disturbed: str | None = None

    @property
    def known_miss(self) -> str:
        """Why nothing can come from the cache here that is known beforehand, with the remedy; empty where it may."""
        return self.unmarked or self.too_short

    def values(self, metric: str, cell: Cell) -> dict[int, float]:
        """Block -> value of a metric in a cell, usable requests only."""
        row = metric_named(metric)
        return {
            one.planned.block: value
            for one in self.measured
            if one.planned.cell == cell and (value := usable_value(one.timeline, row)) is not None
        }

    def paired(self, metric: str, cells: Sequence[Cell]) -> NDArray[np.float64]:
        """Values of a metric as rows of blocks and columns of cells; only blocks complete in every cell."""
        columns = [self.values(metric, cell) for cell in cells]
        blocks = sorted(set.intersection(*(set(column) for column in columns))) if columns else []
        return np.array([[column[block] for column in columns] for block in blocks], dtype=np.float64).reshape(
            len(blocks), len(cells)
        )

    def cell(self, role: str) -> Cell:
        """The first cell with that role.

        Raises:
            ValueError: no cell has it.
        """
        for cell in self.workload.cells:
            if cell.role == role:
                return cell
        raise ValueError(f"{self.workload.name} has no role {role!r}; roles: {', '.join(self.workload.roles)}")

    def cached_tokens(self, cell: Cell) -> list[int | None]:
        """Per usable request of a cell the cached tokens that the server reported; None where it reported none."""
        return [line.cached_tokens for line in self.timelines(cell) if line.status == "ok"]

    def gaps(self) -> list[list[float]]:
        """Per usable request the gaps between its token events, in seconds."""
        return [inter_chunk_latencies(line) for line in self.timelines() if line.status == "ok" and line.sample_valid]

    def first_event(self) -> FirstEvent:
        """How many tokens the first token event of an answer holds: above 1 where text comes in lumps."""
        return first_event_of(self.timelines())

    def timelines(self, cell: Cell | None = None) -> list[Timeline]:
        """Timelines of one cell, or of all, in order of sending."""
        return [one.timeline for one in self.measured if cell is None or one.planned.cell == cell]

    def failures(self) -> Counter[str]:
        """Error kind -> number of failed requests."""
        return Counter(line.error_kind or line.status for line in self.timelines() if line.status != "ok")

    def unfit(self) -> Counter[str]:
        """Reason -> number of requests that were answered but may not enter a latency sample."""
        reasons: Counter[str] = Counter()
        for line in self.timelines():
            if line.status == "ok" and not line.sample_valid:
                reasons.update((UNFIT | UNFIT_COLD).intersection(line.flags) or ("unfit",))
        return reasons

    @property
    def error_rate(self) -> float:
        """Failed requests over all requests sent; 0.0 when none was sent."""
        return sum(self.failures().values()) / len(self.measured) if self.measured else 0.0

    def problem(self) -> str | None:
        """Why this run must not be judged, in one line, or None."""
        if not self.measured:
            return f"{self.workload.name}: nothing was measured"
        if self.gone or self.error_rate > MAX_ERROR_RATE:
            first = next(line for line in self.timelines() if line.status != "ok")
            kinds = ", ".join(f"{count} x {kind}" for kind, count in self.failures().most_common())
            said = f"; the first said: {first.error_message}" if first.error_message else ""
            return f"{self.workload.name}: {self._share(self.failures().total())} requests failed ({kinds}){said}"
        unfit = sum(1 for line in self.timelines() if line.status == "ok" and not line.sample_valid)
        if any(share_of_other_prompts(self.timelines(cell)) > 0.5 for cell in self.workload.cells):
            return f"{self.workload.name}: {other_prompt_words(self.timelines())}"
        if unfit > len(self.measured) / 2:
            kinds = ", ".join(f"{count} x {kind}" for kind, count in self.unfit().most_common())
            return f"{self.workload.name}: {self._share(unfit)} answers are unfit for a latency sample ({kinds})"
        return None

    def disproved(self) -> str | None:
        """Why the token counts of some cell prove nothing, in one line; None while most counts of every cell stand."""
        if any(mostly_disproved(self.timelines(cell)) for cell in self.workload.cells):
            return f"{self.workload.name}: {disproof_words(self.timelines())}"
        return None

    def left_out(self) -> list[str]:
        """Which values of metrics of the user's own no session can hold, a line a metric; empty where all can be."""
        return [line for metric in own_metrics() if (line := _left_out(self.timelines(), metric)) is not None]

    def _share(self, count: int) -> str:
        return f"{count} of {len(self.measured)}"

    def measurements(self, metrics: Sequence[str] = ("ttft", "tpot", "e2el")) -> list[Measurement]:
        """One `Measurement` per cell and metric, as sessions store them."""
        digest = self.workload.digest()
        return [
            _measurement(self, cell, metric_named(name), digest) for cell in self.workload.cells for name in metrics
        ]


def usable_value(timeline: Timeline, metric: Metric) -> float | None:
    """The value of a metric where the request may enter a sample, else None."""
    if timeline.status != "ok" or not timeline.sample_valid:
        return None
    value = metric.measure(timeline)
    return None if isinstance(value, Undefined) else value


def storable_value(timeline: Timeline, metric: Metric) -> float | None:
    """The value of a metric where it may enter a session, else None: ratios are taken of it, so it is above 0."""
    value = usable_value(timeline, metric)
    return value if value is not None and math.isfinite(value) and value > 0 else None


def _measurement(run: WorkloadRun, cell: Cell, metric: Metric, digest: str) -> Measurement:
    lines = run.timelines(cell)
    needs_count = metric.unit == "s/token"
    sources = sorted({line.token_source for line in lines if line.token_source})
    return Measurement(
        workload=cell.label,
        metric=metric.short,
        samples=tuple(value for line in lines if (value := storable_value(line, metric)) is not None),
        phase=metric.phase.value,
        workload_digest=digest,
        token_source="+".join(sources) or None if needs_count else None,
        requests=len(lines),
        failed=_count(lines, lambda line: line.status != "ok"),
        invalid=_count(lines, lambda line: line.status == "ok" and not line.sample_valid),
        flags=tuple(sorted({flag for line in lines for flag in line.flags})),
    )


def _left_out(lines: Sequence[Timeline], metric: Metric) -> str | None:
    usable = _count(lines, lambda line: usable_value(line, metric) is not None)
    left = usable - _count(lines, lambda line: storable_value(line, metric) is not None)
    if not left:
        return None
    return (
        f"{metric.short}: {left} of {usable} values are not above 0 and finite, and changes are ratios; they are left "
        "out of the session: let the metric return Undefined, with the reason, where there is no value"
    )


def _count(lines: Sequence[Timeline], holds: Callable[[Timeline], bool]) -> int:
    return sum(1 for line in lines if holds(line))
