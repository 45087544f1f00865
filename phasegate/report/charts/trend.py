"""A metric over stored sessions and those of this run, with the baseline's level and its tolerance."""

from __future__ import annotations

import statistics

from phasegate.core.units import axis_unit, format_percent
from phasegate.report.charts.plane import LEFT, Plane, plane
from phasegate.report.charts.scale import nice_ticks
from phasegate.report.charts.svg import WIDTH, Chart, circle, element, line, path, picture, rect, text
from phasegate.report.document.model import Trend, TrendPoint
from phasegate.report.document.words import metric_name, show, worse_by

HEIGHT = 216.0


def trend_chart(
    trend: Trend, tolerance: float | None = None, *, better: str = "lower", change: float | None = None
) -> Chart:
    """The sessions in order.

    Args:
        tolerance: the smallest worsening that the gate must find, as a fraction, or None.
        better: which direction of the metric is better.
        change: what the gate found, as a fraction; None takes that of the medians.
    """
    values = [one.value for one in trend.points]
    old = [one.value for one in trend.points if one.side == "baseline"]
    base = statistics.median(old) if old else None
    limit = _limit(base, tolerance, better)
    shown = [*values, *([limit] if limit is not None else [])]
    low, high = min(shown), max(shown)
    margin = max((high - low) * 0.15, high * 0.02)
    bottom, top = max(0.0, low - margin), high + margin
    space = plane((0.4, len(values) + 0.6), (bottom, top), height=HEIGHT)
    seconds = trend.unit.startswith("s")
    factor, unit = axis_unit(top) if seconds else (1.0, trend.unit)
    per = "/token" if trend.unit == "s/token" else ""
    frame = space.frame(
        "session, oldest first", f"{metric_name(trend.metric)} ({unit}{per})",
        x_ticks=[(tick, f"{tick:g}") for tick in nice_ticks(1, len(values), 6) if tick == int(tick) and tick >= 1],
        y_ticks=[(tick / factor, f"{tick:g}") for tick in nice_ticks(bottom * factor, top * factor, 6)],
    )  # fmt: skip
    caption = _caption(trend, base, change)
    svg = picture(
        f"{trend.workload} {metric_name(trend.metric)} over sessions", caption, WIDTH, HEIGHT,
        frame, _levels(space, base, limit), element("g", _marks(space, trend.points), class_=trend.phase),
    )  # fmt: skip
    rows = tuple((one.session, one.recorded_at, one.side, show(one.value, trend.unit)) for one in trend.points)
    return Chart(svg, f"{trend.workload}: {metric_name(trend.metric)}", caption,
                 ("session", "recorded", "side", metric_name(trend.metric)), rows)  # fmt: skip


def _limit(base: float | None, tolerance: float | None, better: str) -> float | None:
    if base is None or tolerance is None:
        return None
    return base * (1 + worse_by(tolerance, better))


def _levels(space: Plane, base: float | None, limit: float | None) -> str:
    """The baseline's median, and the tolerance beyond it."""
    parts = []
    if base is not None:
        y = space.y.at(base)
        parts += [line(LEFT, y, WIDTH - 16, y, "base-level")]
    if limit is not None:
        y = space.y.at(limit)
        parts += [line(LEFT, y, WIDTH - 16, y, "limit"), text(LEFT + 6, y - 5, "tolerance", "limit-name")]
    return element("g", *parts) if parts else ""


def _marks(space: Plane, points: tuple[TrendPoint, ...]) -> str:
    at = [(space.x.at(number), space.y.at(one.value), one.side) for number, one in enumerate(points, 1)]
    marks = [
        rect(x - 4, y - 4, 8, 8, "session-now") if side == "now" else circle(x, y, 3.6, "session-old")
        for x, y, side in at
    ]
    return element("g", path([(x, y) for x, y, _ in at], "series thin"), *marks)


def _caption(trend: Trend, base: float | None, change: float | None) -> str:
    now = [one.value for one in trend.points if one.side == "now"]
    said = f"{len(trend.points) - len(now)} earlier sessions (circles) and {len(now)} of this run (squares)"
    if change is not None:
        said += f"; now {format_percent(change, signed=True)} against the earlier ones"
    elif base and now:
        moved = format_percent(statistics.median(now) / base - 1, signed=True)
        said += f"; now {moved} against the median of the earlier ones"
    return said + "."
