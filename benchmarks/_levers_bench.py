"""Before and after of one lever: two embedded engines in one sitting, asked in turns, compared block by block.

Both run all the time and only one is asked at a time, in the order ABBA or BAAB by turns, so that a steady drift of the
machine falls on both alike. A block's value is the median of its two visits; the ratio is that of the blocks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from phasegate.core.request import Request
from phasegate.core.timeline import Expected, Timeline
from phasegate.diagnose.from_runs import ask_of
from phasegate.load.closed import run_closed
from phasegate.measure.connect import EngineOptions, connect
from phasegate.measure.session_runner import MeasurementError, SessionRunner
from phasegate.stats.intervals import mean_interval
from phasegate.stats.level_run import Round
from phasegate.wire.openai_stream import decode

ALPHA = 0.025
"""Error probability of each bound: intervals of 95 %."""

Values = Mapping[str, float]
"""Metric -> what one visit measured."""


@dataclass(frozen=True, slots=True)
class Lever:
    """One lever with the settings before and after.

    Attributes:
        name: for the page.
        before, after: settings of the embedded engine.
        visit: what is asked of each.
        blocks: how often both are visited.
    """

    name: str
    before: str
    after: str
    visit: Callable[[SessionRunner, int], Values]
    blocks: int = 6


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric before and after.

    Attributes:
        metric: its name.
        before, after: medians of the blocks.
        ratio, low, high: after / before with its 95 % interval; the ends are None with a single block.
    """

    metric: str
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One lever and what it did."""

    lever: Lever
    effects: tuple[Effect, ...]


@dataclass
class _Side:
    """One engine and the values of its blocks."""

    runner: SessionRunner
    blocks: list[dict[str, float]] = field(default_factory=list)


def measure(lever: Lever, seed: int, blocks: int | None = None) -> Measured:
    """Start both engines, visit them in turns, and compare.

    Raises:
        EngineError, MeasurementError: an engine cannot be started, or a request failed.
    """
    with ExitStack() as stack:
        engine_options = EngineOptions(base_url=None, seed=seed)
        sides = [
            _Side(stack.enter_context(connect(replace(engine_options, engine_config=settings))))
            for settings in (lever.before, lever.after)
        ]
        numbers = itertools.count(1)
        for side in sides:
            lever.visit(side.runner, next(numbers))
        for block in range(blocks or lever.blocks):
            _one_block(lever, sides, numbers, flipped=block % 2 == 1)
    return Measured(lever, tuple(effects(sides[0].blocks, sides[1].blocks)))


def _one_block(lever: Lever, sides: Sequence[_Side], numbers: itertools.count[int], *, flipped: bool) -> None:
    order = (1, 0, 0, 1) if flipped else (0, 1, 1, 0)
    seen: tuple[list[Values], list[Values]] = ([], [])
    for place in order:
        seen[place].append(lever.visit(sides[place].runner, next(numbers)))
    for side, visits in zip(sides, seen, strict=True):
        side.blocks.append({name: float(np.median([one[name] for one in visits])) for name in visits[0]})


def effects(before: Sequence[Values], after: Sequence[Values]) -> list[Effect]:
    """Every metric that both sides measured in every block."""
    names = [name for name in before[0] if all(name in one for one in (*before, *after))]
    return [_effect(name, [one[name] for one in before], [one[name] for one in after]) for name in names]


def _effect(name: str, before: Sequence[float], after: Sequence[float]) -> Effect:
    logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
    middle, ends = float(np.mean(logs)), (None, None)
    if len(logs) > 1:
        told = mean_interval(logs, ALPHA)
        ends = (math.exp(told.low), math.exp(told.high))  # type: ignore[assignment]
    return Effect(name, float(np.median(before)), float(np.median(after)), math.exp(middle), *ends)


def alone(prompt: int, output: int, requests: int = 2) -> Callable[[SessionRunner, int], Values]:
    """One request after another, every prompt new: TTFT, TPOT, and how many tokens a step yields."""

    def visit(runner: SessionRunner, number: int) -> Values:
        ask = ask_of("alone", _send(runner, _fresh(runner, prompt, output, requests, number)), prompt)
        values = {"TTFT": ask.ttft, "TPOT": ask.tpot, "total": ask.total}
        if ask.steps is not None and ask.steps.drafted:
            values["tokens a step"] = ask.steps.tokens_per_step
        return {name: value for name, value in values.items() if value is not None}

    return visit


def second_call(prompt: int) -> Callable[[SessionRunner, int], Values]:
    """A prompt and the same prompt again: TTFT of both."""

    def visit(runner: SessionRunner, number: int) -> Values:
        (request,) = _fresh(runner, prompt, 4, 1, number)
        again = replace(request, request_id=f"{request.request_id} again", expected=_warm(request))
        first, second = (ask_of("call", _send(runner, [one])).ttft for one in (request, again))
        assert first is not None
        assert second is not None
        return {"TTFT": first, "TTFT, second call": second}

    return visit


def _warm(request: Request) -> Expected:
    return replace(request.expected, cold_prompt=False)


def together(users: int, prompt: int, output: int) -> Callable[[SessionRunner, int], Values]:
    """So many users at a time, each with one request: TTFT, TPOT, and tokens a second over all."""

    def visit(runner: SessionRunner, number: int) -> Values:
        lines = _send(runner, _fresh(runner, prompt, output, users, number), users)
        ask = ask_of("together", lines, prompt)
        values = {"TTFT": ask.ttft, "TPOT": ask.tpot, "total": ask.total}
        known = {name: value for name, value in values.items() if value is not None}
        return {**known, f"tokens/s, {users} users": Round(tuple(lines)).token_rate}

    return visit


def _fresh(runner: SessionRunner, prompt: int, output: int, count: int, number: int) -> list[Request]:
    return runner.fresh_requests(runner.endpoint, prompt, output, count, name="levers", first=number * 1000)


def _send(runner: SessionRunner, requests: Sequence[Request], users: int = 1) -> list[Timeline]:
    result = run_closed(runner.target, requests, max_concurrency=users)
    if result.partial:
        raise KeyboardInterrupt
    lines = [decode(recording) for recording in result.recordings]
    failed = next((line for line in lines if line.status != "ok"), None)
    if failed is not None:
        raise MeasurementError(f"a request failed: {failed.error_message or failed.error_kind or failed.status}")
    return lines


LEVERS: tuple[Lever, ...] = (
    Lever("weights f32 -> f16", "weights=f32", "weights=f16", alone(256, 24)),
    Lever("weights f16 -> q8_0", "weights=f16", "weights=q8_0", alone(256, 24)),
    Lever("flash attention off -> on", "flash_attn=off", "flash_attn=on", alone(1024, 24), blocks=5),
    Lever("prompt pieces (n_ubatch) 512 -> 128", "n_ubatch=512", "n_ubatch=128", alone(512, 16)),
    Lever("prompt pieces (n_ubatch) 512 -> 32", "n_ubatch=512", "n_ubatch=32", alone(512, 16)),
    Lever("slots 1 -> 4", "n_parallel=1", "n_parallel=4", together(16, 64, 12), blocks=4),
    Lever("slots 1 -> 16", "n_parallel=1", "n_parallel=16", together(16, 64, 12), blocks=4),
    Lever("prefix cache off -> on", "cache_prompt=false", "cache_prompt=true", second_call(512)),
    Lever("draft model off -> on (3 guesses)", "", "draft_tokens=3", alone(64, 48)),
    Lever("draft accepted -> rejected", "draft_tokens=3", "draft_tokens=3 draft_yield=1", alone(64, 24, 1), blocks=5),
)
"""Every pair, in the order of the page."""
