"""The page of measured levers: one table phase by phase, and one sentence for each lever, both from the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks._levers_bench import Effect, Measured
from benchmarks._page import row
from phasegate.core.units import format_rate, format_seconds

NOTHING = 0.02
"""A ratio whose whole interval lies within 2 % of 1 is called unchanged."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The circumstances: command, time, engine, host, load at the start and at the end, blocks, seconds."""

    command: str
    when: str
    engine: str
    host: str
    load: str
    seconds: float


PHASES = {"TTFT": "prefill", "TTFT, second call": "prefill", "TPOT": "decode", "tokens a step": "decode"}
"""Metric -> the phase it shows; the others are of whole requests."""

HEAD = """# Levers, measured on the embedded engine

Written by `{command}`; figures are not typed by hand.

Each lever is two llama.cpp servers with its two settings, running side by side and asked in turns (ABBA, then BAAB),
so that a drift of the machine falls on both. A ratio is after / before over blocks, with its 95 % interval (Student's t
on the logarithms). Below 1 is faster, except for tokens a step and tokens/s.

* Engine: {engine}
* Host: {host}
* Measured: {when}, {seconds:.0f} s, {load}

"""


def page(measured: Sequence[Measured], facts: Facts) -> str:
    """The whole page in Markdown."""
    head = HEAD.format(
        command=facts.command,
        engine=facts.engine,
        host=facts.host,
        when=facts.when,
        seconds=facts.seconds,
        load=facts.load,
    )
    lines = [row(["lever", "metric", "phase", "before", "after", "ratio", "95 % interval"])]
    lines.append("|---|---|---|---:|---:|---:|---|")
    for one in measured:
        lines += [_row(one, effect) for effect in one.effects]
    return head + "\n".join([*lines, "", "## In words", "", *_words(measured)]) + "\n"


def _row(one: Measured, effect: Effect) -> str:
    interval = "-" if effect.low is None or effect.high is None else f"{effect.low:.3f} to {effect.high:.3f}"
    phase = PHASES.get(effect.metric, "both")
    values = [show(effect.metric, value) for value in (effect.before, effect.after)]
    return row([one.lever.name, effect.metric, phase, *values, f"{effect.ratio:.3f}", interval])


def show(metric: str, value: float) -> str:
    """A value in its own unit."""
    if metric.startswith("tokens/s"):
        return format_rate(value, "tokens")
    return f"{value:.2f}" if metric == "tokens a step" else format_seconds(value)


def _words(measured: Sequence[Measured]) -> Iterator[str]:
    for one in measured:
        told = "; ".join(f"{effect.metric} {verdict(effect)}" for effect in one.effects)
        before, after = (settings or "defaults" for settings in (one.lever.before, one.lever.after))
        yield f"* **{one.lever.name}** (`{before}` -> `{after}`): {told}."


def verdict(effect: Effect) -> str:
    """What the interval allows to say."""
    if effect.low is None or effect.high is None:
        return f"x {effect.ratio:.2f}, one block only, so no interval"
    if effect.low > 1 - NOTHING and effect.high < 1 + NOTHING:
        return "unchanged within 2 %"
    if effect.low > 1:
        return f"rises to x {effect.ratio:.2f}"
    if effect.high < 1:
        return f"falls to x {effect.ratio:.2f}"
    return f"not told apart from no change (x {effect.low:.2f} to {effect.high:.2f})"
