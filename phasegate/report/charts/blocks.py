"""A metric over the blocks of a paired comparison: both servers of each block, in the order of measuring."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from phasegate.core.units import axis_unit, format_percent
from phasegate.report.charts.plane import LEFT, Plane, plane
from phasegate.report.charts.scale import nice_ticks
from phasegate.report.charts.svg import WIDTH, Chart, circle, element, line, picture, rect
from phasegate.report.document.model import Trend
from phasegate.report.document.words import metric_name, show

HEIGHT = 216.0

ASIDE = 0.12
"""How far the two servers of a block stand from its middle, in blocks."""

Pair = tuple[str, str, float, float]
"""Name of a block, its order (ABBA or BAAB, A the reference), and the values of reference and candidate."""


def blocks_chart(trend: Trend, change: float | None) -> Chart:
    """The blocks in order; ``change`` is what the gate found over all of them, as a fraction, or None."""
    pairs = _pairs(trend)
    values = [value for _, _, old, new in pairs for value in (old, new)]
    low, high = min(values), max(values)
    margin = max((high - low) * 0.15, high * 0.02)
    bottom, top = max(0.0, low - margin), high + margin
    space = plane((0.4, len(pairs) + 0.6), (bottom, top), height=HEIGHT)
    factor, unit = axis_unit(top) if trend.unit.startswith("s") else (1.0, trend.unit)
    per = "/token" if trend.unit == "s/token" else ""
    frame = space.frame(
        "block, in the order of measuring", f"{metric_name(trend.metric)} ({unit}{per})",
        x_ticks=[(number, f"{number}") for number in range(1, len(pairs) + 1)],
        y_ticks=[(tick / factor, f"{tick:g}") for tick in nice_ticks(bottom * factor, top * factor, 6)],
    )  # fmt: skip
    caption = _caption(pairs, change)
    name = f"{trend.workload} {metric_name(trend.metric)} block by block"
    svg = picture(name, caption, WIDTH, HEIGHT, frame, _level(space, pairs),
                  element("g", *_marks(space, pairs), class_=trend.phase))  # fmt: skip
    rows = tuple(
        (block, order, show(old, trend.unit), show(new, trend.unit), format_percent(new / old - 1, signed=True))
        for block, order, old, new in pairs
    )
    return Chart(svg, f"{trend.workload}: {metric_name(trend.metric)}", caption,
                 ("block", "order (A: reference)", "reference", "candidate", "change"), rows)  # fmt: skip


def _pairs(trend: Trend) -> list[Pair]:
    """The blocks that hold both servers."""
    old, new = (
        {one.session: one.value for one in trend.points if one.side == side} for side in ("reference", "candidate")
    )
    shared = [name for name in old if name in new]
    orders = dict(zip(old, trend.orders, strict=False))
    return [(name, orders.get(name, ""), old[name], new[name]) for name in shared]


def _level(space: Plane, pairs: Sequence[Pair]) -> str:
    y = space.y.at(statistics.median(old for _, _, old, _ in pairs))
    return element("g", line(LEFT, y, WIDTH - 16, y, "base-level"))


def _marks(space: Plane, pairs: Sequence[Pair]) -> list[str]:
    marks = []
    for number, (_, _, old, new) in enumerate(pairs, 1):
        left, right = space.x.at(number - ASIDE), space.x.at(number + ASIDE)
        before, after = space.y.at(old), space.y.at(new)
        marks += [
            line(left, before, right, after, "series thin"),
            circle(left, before, 3.6, "session-old"),
            rect(right - 4, after - 4, 8, 8, "session-now"),
        ]
    return marks


def _caption(pairs: Sequence[Pair], change: float | None) -> str:
    orders = sorted({order for _, order, _, _ in pairs if order})
    turns = f" in the orders {' and '.join(orders)}" if orders else ""
    said = (
        f"{len(pairs)} blocks, in each of which both servers were measured in turns{turns} (A the reference, B the "
        "candidate): circles are the reference, squares the candidate, the line is the reference's median"
    )
    found = "" if change is None else f"; candidate {format_percent(change, signed=True)} over all blocks"
    return f"{said}{found}."
