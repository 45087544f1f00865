"""The server's own account of a measurement, beside the client's: its counters before and after, and what a request
costs outside the engine's clock. Everything here happens between measurements, never inside one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from phasegate.core.metric import Undefined
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.timeline import Timeline
from phasegate.core.workload import Cell
from phasegate.engines.metrics.page import MetricsPages
from phasegate.measure.prompt_counting import shortest_answer
from phasegate.stats.counters import Kind, Reading, ServerCounts, counted_between
from phasegate.stats.first_token import (
    IMPOSSIBLE,
    FirstToken,
    Overheads,
    median_split,
    split_by_counts,
    split_by_timings,
)
from phasegate.stats.workload_run import WorkloadRun

if TYPE_CHECKING:
    from phasegate.measure.session_runner import SessionRunner

PROBES = 9
"""Requests of one token, the cheapest of which is the cost of HTTP: other work only makes one dearer. Together they
take a tenth of a second on a small model."""

WORDS = (1, 256, 1024, 2048)
"""Of the texts at the tokenizer's door."""

TRIES = 4
"""Of each length; the fastest counts, as above."""


@dataclass
class ServerMetrics:
    """What one server tells about itself.

    Attributes:
        door: its ``/metrics`` page.
        overheads: endpoint -> what a request costs outside the engine's clock, None where that could not be measured.
        note: why the page was not read, in one sentence, or None.
        spans: measurements that had a page before and after.
        moved: whether any counter grew in one of them.
    """

    door: MetricsPages
    overheads: dict[str, Overheads | None] = field(default_factory=dict)
    note: str | None = None
    spans: int = 0
    moved: bool = False

    @property
    def remark(self) -> str | None:
        """Why the page told nothing, in one sentence, or None."""
        if self.note is None and self.spans and not self.moved:
            times = f"{self.spans} measurement{'s' if self.spans != 1 else ''}"
            return f"none of the server's own counters moved in {times}: is that the engine's page?"
        return self.note

    def read(self) -> Mapping[str, Reading]:
        """The page's readings now; empty where it cannot be had."""
        page = self.door.read()
        self.note = page.note
        return page.readings

    def since(self, before: Mapping[str, Reading]) -> ServerCounts | None:
        """What was counted since a reading; None where the page tells nothing."""
        after = self.read()
        if before and after:
            self.spans += 1
            self.moved = self.moved or any(
                one.kind is not Kind.GAUGE and one != before.get(word) for word, one in after.items()
            )
        return counted_between(before, after, self.door.pages) if after else None

    def learn(self, runner: SessionRunner, endpoint: str, lines: Sequence[Timeline]) -> None:
        """Measure the overheads of an endpoint, once, where the server's own times are known at all."""
        names = self.door.names
        told = any(line.server_timings for line in lines) or (names is not None and self.note is None)
        if endpoint in self.overheads or not told or (names is not None and not names.probed):
            return
        self.overheads[endpoint] = None
        http = _http_cost(self, runner, endpoint)
        if http is not None:
            inside = names is not None and names.tokenised_inside
            self.overheads[endpoint] = Overheads(http, None if inside else _token_cost(runner, endpoint), inside)

    def splits(self, run: WorkloadRun, cell: Cell) -> list[FirstToken]:
        """The TTFT of every usable request of a cell whose answer carried the server's timings, in parts."""
        return splits_of(run.timelines(cell), self.overheads.get(run.workload.endpoint or ""))


def _http_cost(view: ServerMetrics, runner: SessionRunner, endpoint: str) -> float | None:
    """The least that the client measured beyond the server on requests of a word and one token."""
    before = view.read()
    lines = [line for number in range(PROBES) if (line := _least_request(runner, endpoint, number)).status == "ok"]
    splits = splits_of(lines)
    if not splits and lines and before:
        split = split_by_counts(lines, view.since(before) or ServerCounts())
        splits = [] if isinstance(split, Undefined) else [split]
    return min((one.outside for one in splits if one.outside is not None), default=None)


def _least_request(runner: SessionRunner, endpoint: str, number: int) -> Timeline:
    """The shortest answer there is to one word."""
    return shortest_answer(runner, _text(runner, number, 1), endpoint)


def _token_cost(runner: SessionRunner, endpoint: str) -> tuple[tuple[float, float], ...] | None:
    """Tokens and seconds beyond the shortest text at the tokenizer's door; None where there is no such door.

    Every text is new and is asked for behind a request that read the whole model, because a tokenizer that has its
    tables in the processor's cache is twice as fast as one that comes in between two answers.
    """
    points = []
    for words in WORDS:
        least: tuple[float, int] | None = None
        for number in range(TRIES):
            _least_request(runner, endpoint, number)
            text = _text(runner, number, words)
            start = perf_counter()
            tokens = runner.engine.tokenize(text)
            seconds = perf_counter() - start
            if tokens is None:
                return None
            least = min(least or (seconds, tokens), (seconds, tokens))
        assert least is not None
        points.append(least)
    base = points[0][0]
    return tuple(sorted((float(tokens), max(seconds - base, 0.0)) for seconds, tokens in points))


def _text(runner: SessionRunner, number: int, count: int) -> str:
    """Words in an order of their own for every number, so that no text is like another."""
    words = list(runner.engine.words) or list(COMMON_WORDS)
    step = 2 * number + 7
    return " ".join(words[(number * 97 + place * step) % len(words)] for place in range(count))


def splits_of(lines: Sequence[Timeline], overheads: Overheads | None = None) -> list[FirstToken]:
    """The TTFT of every usable request whose answer carried the server's timings, in parts."""
    splits = (split_by_timings(line, overheads) for line in lines if line.status == "ok" and line.sample_valid)
    return [one for one in splits if isinstance(one, FirstToken)]


def impossible(run: WorkloadRun) -> str | None:
    """Why the server's own times of a run are not used, in one line; None where they can be true, or none are told."""
    lines = [line for line in run.timelines() if line.status == "ok" and line.sample_valid]
    told = [split_by_timings(line) for line in lines]
    if run.server is not None:
        told.append(split_by_counts(run.timelines(), run.server))
    return next((one.reason for one in told if isinstance(one, Undefined) and one.reason.startswith(IMPOSSIBLE)), None)


def observed(view: ServerMetrics, runs: Sequence[WorkloadRun]) -> dict[str, Any]:
    """What the server told of these runs, as plain values for a session's file; empty where it told nothing."""
    told: dict[str, Any] = {}
    for run in runs:
        facts: dict[str, Any] = {}
        if run.server is not None:
            facts["counted"] = run.server.facts()
        middles = {cell.label: median_split(view.splits(run, cell)) for cell in run.workload.cells}
        splits = {label: middle.facts() for label, middle in middles.items() if middle is not None}
        if splits:
            facts["first_token"] = splits
        if facts:
            told[run.workload.name] = facts
    return told
