"""A comparison drawn on one line: the tolerance, the interval of the change, and every session on its side.

All rows share one axis in per cent, so that a long bar in one row is a long bar in every row. Sessions of the baseline
are hollow circles above the line, those of now filled squares below it; beyond the ends of the axis an arrow stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.units import format_percent
from phasegate.report.charts.scale import Scale, nice_ticks
from phasegate.report.charts.svg import circle, diamond, element, line, picture, rect, text
from phasegate.report.document.model import Row
from phasegate.report.document.words import change, interval, metric_name, worse_by

WIDTH, HEIGHT, PAD = 300.0, 40.0, 12.0
AXIS_HEIGHT = 24.0

MOST = 1.5
"""The axis ends at +150 %: whatever is slower than that needs no ruler."""

LEAST = 0.08
"""It shows at least 8 % to either side, so that noise of 1 % does not look like a landslide."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """The axis that all rows share, as changes: 0.1 is 10 % more than the baseline."""

    scale: Scale

    def axis(self) -> str:
        """The ruler itself, for the head of the table."""
        parts = []
        for tick in nice_ticks(self.scale.low, self.scale.high, 6):
            at, words = self.scale.at(tick), f"{100 * tick:+.3g} %" if tick else "0"
            parts += [line(at, AXIS_HEIGHT - 5, at, AXIS_HEIGHT, "axis")]
            parts += [text(at, AXIS_HEIGHT - 9, words, "tick", "middle")]
        return picture("Change against the baseline in per cent", "The axis of the bars below.", WIDTH, AXIS_HEIGHT,
                       *parts, class_="bar-axis")  # fmt: skip


def ruler(rows: Sequence[Row]) -> Ruler:
    """An axis on which every interval and limit of these rows has room, up to `MOST`."""
    ends = [end - 1 for row in rows for end in (row.ratio, row.ratio_low, row.ratio_high) if end is not None]
    ends += [1.3 * worse_by(row.tolerance, row.better) for row in rows if row.tolerance is not None]
    high = min(max([*ends, LEAST]), MOST)
    low = max(min([*ends, -LEAST]), -MOST / 2)
    margin = (high - low) * 0.06
    return Ruler(Scale(low - margin, high + margin, PAD, WIDTH - PAD))


def change_bar(row: Row, on: Ruler) -> str:
    """One row of the table as a picture."""
    scale, middle = on.scale, HEIGHT / 2
    parts = [_tolerated(row, scale), line(scale.at(0.0), 3, scale.at(0.0), HEIGHT - 3, "zero")]
    base = row.baseline_value
    if base:
        old, new = ([level / base - 1 for level in side] for side in (row.baseline_levels, row.candidate_levels))
        parts += [circle(scale.at(one), middle - 11, 2.6, "session-old") for one in old if _inside(one, scale)]
        parts += [
            rect(scale.at(one) - 2.4, middle + 8.6, 4.8, 4.8, "session-now") for one in new if _inside(one, scale)
        ]
    if row.ratio is not None:
        parts += _interval(row, scale, middle)
    else:
        parts.append(text(scale.at(0.0) + 8, middle + 4, "not compared", "tick"))
    told = f"{change(row)}, 95 % interval {interval(row)}, tolerance {format_percent(row.tolerance)}"
    told += f", fails from {format_percent(row.fails_from)}" if row.fails_from is not None else ""
    return picture(f"{row.workload} {metric_name(row.metric)}", told, WIDTH, HEIGHT, *parts,
                   class_=f"change {row.phase} {row.verdict.lower()}")  # fmt: skip


def _inside(value: float, scale: Scale) -> bool:
    return scale.low <= value <= scale.high


def _tolerated(row: Row, scale: Scale) -> str:
    """Everything up to the tolerance, shaded, with a line at the tolerance and a broken one from where on a proven
    worsening fails."""
    if row.tolerance is None:
        return ""
    limit = scale.at(worse_by(row.tolerance, row.better))
    start, end = (scale.start, limit) if row.better == "lower" else (limit, scale.end)
    parts = [rect(start, 3, end - start, HEIGHT - 6, "accepted"), line(limit, 3, limit, HEIGHT - 3, "limit")]
    if row.fails_from is not None:
        at = scale.at(row.fails_from)
        parts.append(line(at, 3, at, HEIGHT - 3, "half-limit"))
    return element("g", *parts)


def _interval(row: Row, scale: Scale, y: float) -> list[str]:
    assert row.ratio is not None
    parts = []
    if row.ratio_low is not None and row.ratio_high is not None:
        low, high = scale.at(row.ratio_low - 1), scale.at(row.ratio_high - 1)
        parts.append(rect(low, y - 2.5, max(high - low, 1.5), 5, "interval-bar"))
    if _inside(row.ratio - 1, scale):
        return [*parts, diamond(scale.at(row.ratio - 1), y, 6, "estimate")]
    to_right = row.ratio - 1 > scale.high
    x, step = (scale.end, -9.0) if to_right else (scale.start, 9.0)
    points = f"{x:.1f},{y:.1f} {x + step:.1f},{y - 6:.1f} {x + step:.1f},{y + 6:.1f}"
    return [*parts, element("polygon", points=points, class_="estimate")]
