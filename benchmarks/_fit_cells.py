"""The cells that the simulator is fitted to and checked at, and how one is measured on any engine.

A cell is a closed loop of requests of one size. The fitted cells and those held out are different ones: other prompt
lengths, other contexts, other concurrencies, and loads in which prefill, decode and queueing mix, which no fitted cell
has. Everything is seen from outside, by the suite's own client, on the engine and on the simulator alike.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
import psutil

from phasegate.core.metric import Undefined, metric_named
from phasegate.core.timeline import Timeline
from phasegate.engines.host_probe import FOREIGN_LIMIT
from phasegate.load.closed import run_closed
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.wire.openai_stream import decode

SPARE_VISITS = 20
"""Visits that are made again because others were busy; a machine that needs more is not fit for this."""

JOINT = 0.004
"""Seconds within which first tokens count as those of one step; a step with a prompt takes several times as long."""

LEAST_GAPS = 4
"""Gaps in which all streams decode that a cell needs for a step time."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Requests of one size at one concurrency.

    Attributes:
        prompt: tokens of each prompt.
        output: tokens of each answer.
        streams: requests in flight.
        requests: of one visit.
    """

    prompt: int
    output: int
    streams: int = 1
    requests: int = 2

    @property
    def name(self) -> str:
        """The cell in a word that tells it from others."""
        return f"{self.prompt}in-{self.output}out-x{self.streams}"

    @property
    def alone(self) -> bool:
        """Whether no request meets another."""
        return self.streams == 1


FITTED = (
    Cell(32, 32),
    Cell(256, 24),
    Cell(1024, 24),
    Cell(64, 48, streams=2, requests=4),
    Cell(64, 32, streams=4, requests=8),
    Cell(384, 24, streams=4, requests=4),
)
"""TTFT comes from those with one stream; the cost of a step from the stretch in which all streams decode."""

HELD_OUT = (
    Cell(128, 24),
    Cell(512, 24),
    Cell(1536, 24),
    Cell(128, 24, streams=2, requests=8),
    Cell(192, 24, streams=3, requests=9),
    Cell(80, 24, streams=4, requests=12),
    Cell(96, 16, streams=8, requests=16),
)
"""What is predicted; with more streams than slots there is a queue."""


@dataclass
class CellRun:
    """What one engine did in one cell: a list of timelines for each visit.

    Attributes:
        cell: which one.
        visits: the requests of each.
        disturbed: visits among them during which other processes were busy.
    """

    cell: Cell
    visits: list[list[Timeline]] = field(default_factory=list)
    disturbed: int = 0

    def values(self, metric: str) -> list[float]:
        """The metric of every request."""
        return [value for visit in self.visits for value in values_of(metric, visit)]

    def median(self, metric: str) -> float:
        """Median of the metric over all visits, seconds."""
        return float(np.median(self.values(metric)))

    def repeats(self, metric: str) -> float:
        """Furthest median of a visit from the median of all, as a fraction: how well the engine repeats itself."""
        middle = self.median(metric)
        return max(abs(float(np.median(values_of(metric, visit))) / middle - 1) for visit in self.visits)

    def waves(self) -> list[list[Timeline]]:
        """Requests that were in flight together, for cells whose requests come in whole waves."""
        size = self.cell.streams
        return [visit[first : first + size] for visit in self.visits for first in range(0, len(visit), size)]

    def joint_first_token(self) -> float | None:
        """Median TTFT of the last of a wave, over waves that were read in one step; None where none was."""
        found = []
        for wave in self.waves():
            firsts = sorted(line.tokens[0].at for line in wave)
            sent = max(line.sent for line in wave if line.sent is not None)
            if firsts[-1] - firsts[0] < JOINT:
                found.append(firsts[-1] - sent)
        return float(np.median(found)) if found else None

    def step(self) -> tuple[float, float]:
        """(seconds, tokens of context of each stream) of a step in which every stream decodes.

        For cells whose requests come in whole waves: as many as there are streams, or one stream.

        Raises:
            MeasurementError: the streams never decoded together for long enough.
        """
        found = [one for wave in self.waves() if (one := _step(wave, self.cell)) is not None]
        if not found:
            raise MeasurementError(
                f"the {self.cell.streams} streams of {self.cell.name} never decoded together for {LEAST_GAPS} tokens; "
                "is the engine set to serve fewer at a time?"
            )
        seconds, context = zip(*found, strict=True)
        return float(np.median(seconds)), float(np.median(context))


def values_of(metric: str, lines: Sequence[Timeline]) -> list[float]:
    """Values of those requests that have one."""
    row = metric_named(metric)
    return [value for line in lines if not isinstance(value := row.measure(line), Undefined)]


def _step(lines: Sequence[Timeline], cell: Cell) -> tuple[float, float] | None:
    """Mean gap, and mean tokens of context a stream, between the last first token and the first last token."""
    begin = max(line.tokens[0].at for line in lines)
    end = min(line.tokens[-1].at for line in lines)
    spans = []
    for line in lines:
        inside = [number for number, event in enumerate(line.tokens) if begin <= event.at <= end]
        if len(inside) > LEAST_GAPS:
            first, last = inside[0], inside[-1]
            seconds = (line.tokens[last].at - line.tokens[first].at) / (last - first)
            spans.append((seconds, cell.prompt + (first + last) / 2))
    if len(spans) < len(lines):
        return None
    seconds_of, contexts = zip(*spans, strict=True)
    return float(np.mean(seconds_of)), float(np.mean(contexts))


def measure(
    runner: SessionRunner, cells: Sequence[Cell], rounds: int, say: Callable[[str], None], *, noisy: bool = False
) -> dict[Cell, CellRun]:
    """Every cell in every round, in an order drawn anew each time, so that a drift of the machine falls on all.

    A visit during which other processes were busy is made again, `SPARE_VISITS` times in all; with ``noisy`` it counts
    all the same.

    Raises:
        MeasurementError: a request failed, or its answer does not tell its length, or the machine stayed busy.
    """
    runs = {cell: CellRun(cell) for cell in cells}
    rng = np.random.default_rng(runner.seed)
    numbers = itertools.count()
    spare = SPARE_VISITS
    _visit(runner, cells[0], next(numbers))  # warm-up: code, caches and weights
    for number in range(rounds):
        waiting = [cells[int(place)] for place in rng.permutation(len(cells))]
        while waiting:
            cell = waiting.pop(0)
            watch = ForeignCpu()
            lines = _visit(runner, cell, next(numbers))
            busy = watch.cores()
            say(f"round {number + 1} of {rounds}: {cell.name}, others used {busy:.2f} cores")
            if busy > FOREIGN_LIMIT and not noisy:
                spare -= 1
                if spare < 0:
                    raise MeasurementError(
                        f"other processes were busy during {SPARE_VISITS + 1} visits of cells ({busy:.2f} cores in the "
                        f"last, limit {FOREIGN_LIMIT}); measure on a quiet machine, or all the same with --noisy"
                    )
                waiting.append(cell)
                continue
            runs[cell].visits.append(lines)
            runs[cell].disturbed += busy > FOREIGN_LIMIT
    return runs


class ForeignCpu:
    """How many cores others use from now on: processes that are neither this one nor started by it."""

    def __init__(self) -> None:
        self._began, self._busy, self._own = monotonic(), _busy_seconds(), _own_seconds()

    def cores(self) -> float:
        """On average since the start."""
        foreign = (_busy_seconds() - self._busy) - (_own_seconds() - self._own)
        return max(0.0, foreign) / max(monotonic() - self._began, 1e-9)


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(sum(times[:8]) - times.idle - getattr(times, "iowait", 0.0))


def _own_seconds() -> float:
    this = psutil.Process()
    spent = 0.0
    for process in (this, *this.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            spent += sum(process.cpu_times()[:2])
    return spent


def _visit(runner: SessionRunner, cell: Cell, number: int) -> list[Timeline]:
    requests = runner.fresh_requests(
        "chat", cell.prompt, cell.output, cell.requests, name=cell.name, first=number * BLOCK_OF_PROMPTS
    )
    result = run_closed(runner.target, requests, max_concurrency=cell.streams)
    if result.partial:
        raise KeyboardInterrupt
    lines = [decode(recording) for recording in result.recordings]
    for line in lines:
        if line.status != "ok" or line.output_tokens != cell.output:
            said = line.error_message or line.error_kind or f"{line.output_tokens} tokens instead of {cell.output}"
            raise MeasurementError(f"a request of {cell.name} failed: {said}")
    return lines


BLOCK_OF_PROMPTS = 10_000
"""Numbers of prompts set aside for each visit, so that no two share a prompt."""
