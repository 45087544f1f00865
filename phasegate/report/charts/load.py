"""Percentiles over the number of users, with objectives as lines and the level where one breaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from phasegate.core.units import axis_unit, format_seconds
from phasegate.report.charts.plane import LEFT, RIGHT, Plane, plane
from phasegate.report.charts.scale import log_ticks, nice_ticks
from phasegate.report.charts.svg import WIDTH, Chart, circle, diamond, element, line, path, picture, rect, text
from phasegate.report.document.model import LevelRow, LimitRow, Load, ObjectiveRow
from phasegate.report.document.words import metric_name, show

SHOWN = ("p50", "p95", "p99")

LOG_FROM = 40.0
"""A range of more than this ratio is drawn logarithmically: on a linear axis its lower half would be one line."""


NAME_HEIGHT = 15.0
"""Pixels that a line of names takes."""

CHARACTER = 8.0
"""Pixels that a digit of a tick takes at most."""

ROOM = 1.15
"""A chart ends so much above its highest value, where the names of the series stand."""


def load_charts(load: Load) -> list[Chart]:
    """A chart of TTFT and one of TPOT over concurrency, and the same over arrivals a second where measured."""
    found = []
    for by_rate in (False, True):
        levels = [one for one in load.levels if one.by_rate is by_rate]
        if len(levels) > 1:
            found += [one for metric in ("ttft", "tpot") if (one := _chart(load, levels, metric)) is not None]
    return found


def _chart(load: Load, levels: Sequence[LevelRow], metric: str) -> Chart | None:
    by_rate = levels[0].by_rate
    objectives = {(one.percentile, one.limit): one for one in load.objectives if one.metric == metric}
    names = [*SHOWN, *(name for one in objectives.values() if (name := f"p{one.percentile:g}") not in SHOWN)]
    series = {name: _points(levels, metric, name) for name in names}
    values = [value for points in series.values() for _, value in points]
    if not values:
        return None
    limits = [one.limit for one in objectives.values()]
    low, high = min(values), max([*values, *limits])
    log = high / low > LOG_FROM
    space = plane(
        (levels[0].level * 0.9, levels[-1].level * 1.12),
        (low * 0.8 if log else 0.0, high * ROOM),
        log_x=True,
        log_y=log,
    )
    factor, unit = axis_unit(high)
    per = "/token" if metric == "tpot" else ""
    ups = log_ticks(low * 0.8 * factor, high * ROOM * factor) if log else nice_ticks(0.0, high * ROOM * factor)
    x_name = "arrivals (requests/s)" if by_rate else "requests at a time"
    frame = space.frame(
        f"{x_name}, logarithmic", f"{metric_name(metric)} ({unit}{per}{', logarithmic' if log else ''})",
        x_ticks=_apart(space, levels), y_ticks=[(up / factor, f"{up:g}") for up in ups],
    )  # fmt: skip
    breaks = [one for one in load.limits if one.by_rate is by_rate and one.objective.split(":")[0] == metric]
    caption = _caption(breaks, load, metric)
    svg = picture(
        f"{metric_name(metric)} under load", caption, WIDTH, space.height, _broken_zone(space, breaks, levels), frame,
        *(_objective(space, one) for one in objectives.values()),
        element("g", *(_series(space, name, points) for name, points in series.items()), *_names(space, series),
                class_=_phase(metric)),
    )  # fmt: skip
    title = f"{metric_name(metric)} over {'arrivals' if by_rate else 'concurrency'}"
    rows = tuple(_row(one, metric, names) for one in levels)
    return Chart(svg, title, caption, ("level", "sent", *names), rows)


def _phase(metric: str) -> str:
    return "prefill" if metric == "ttft" else "decode"


def _points(levels: Sequence[LevelRow], metric: str, name: str) -> list[tuple[float, float]]:
    found = ((one.level, one.percentiles.get(metric, {}).get(name)) for one in levels)
    return [(level, one.value) for level, one in found if one is not None and one.value is not None]


def _series(space: Plane, name: str, points: Sequence[tuple[float, float]]) -> str:
    """A line with its own dash and mark, named at its right end."""
    at = [(space.x.at(x), space.y.at(y)) for x, y in points]
    if not at:
        return ""
    return element("g", path(at, f"series {name}"), *(_mark(name, *one) for one in at))


def _names(space: Plane, series: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[str]:
    """The name of every series above its last point; series that end together share one line of names."""
    groups: list[tuple[float, float, list[str]]] = []
    for name, points in sorted(series.items(), key=lambda one: one[1][-1][1] if one[1] else 0.0):
        if not points:
            continue
        x, y = space.x.at(points[-1][0]), space.y.at(points[-1][1])
        if groups and abs(groups[-1][1] - y) < NAME_HEIGHT and groups[-1][0] == x:
            groups[-1][2].append(name)
        else:
            groups.append((x, y, [name]))
    for x, y, names in groups:
        yield text(min(x + 6, WIDTH - RIGHT), y - 9, ", ".join(names), "label", "end")


def _apart(space: Plane, levels: Sequence[LevelRow]) -> list[tuple[float, str]]:
    """Every level as a tick; words only where they do not stand on those of the level before."""
    ticks: list[tuple[float, str]] = []
    free = float("-inf")
    for one in levels:
        at, words = space.x.at(one.level), f"{one.level:.3g}"
        half = len(words) * CHARACTER / 2
        fits = at - half >= free
        ticks.append((one.level, words if fits else ""))
        free = at + half + 4 if fits else free
    return ticks


def _mark(name: str, x: float, y: float) -> str:
    if name == "p50":
        return circle(x, y, 3.6, "median")
    return diamond(x, y, 4.6, "median") if name == "p95" else rect(x - 3.2, y - 3.2, 6.4, 6.4, "median")


def _objective(space: Plane, one: ObjectiveRow) -> str:
    y = space.y.at(one.limit)
    words = f"objective p{one.percentile:g} <= {format_seconds(one.limit)}"
    return element("g", line(LEFT, y, WIDTH - 16, y, "objective"), text(LEFT + 6, y - 5, words, "objective-name"))


def _broken_zone(space: Plane, limits: Sequence[LimitRow], levels: Sequence[LevelRow]) -> str:
    """Shades the loads at which an objective is proven broken."""
    known = [one.broken for one in limits if one.broken is not None]
    if not known or not levels:
        return ""
    x = space.x.at(min(known))
    right = WIDTH - 16
    return element(
        "g", rect(x, 26, right - x, space.floor - 26, "broken-zone"), line(x, 26, x, space.floor, "broken-edge"),
        text(min(x + 5, right - 4), space.floor - 8, f"breaks at {min(known):.3g}", "objective-name",
             "start" if x < 340 else "end"),
    )  # fmt: skip


def _caption(limits: Sequence[LimitRow], load: Load, metric: str) -> str:
    if limits:
        return "; ".join(f"{one.text}{f' ({one.cause})' if one.cause else ''}" for one in limits) + "."
    if any(one.metric == metric for one in load.objectives):
        return "Failed requests count as infinitely slow; the search for the break point is --perf-find-limit."
    if load.objectives:
        return f"Failed requests count as infinitely slow. No objective speaks of {metric_name(metric)}."
    return "Failed requests count as infinitely slow. No objective was given: --perf-slo names one."


def _row(one: LevelRow, metric: str, names: Sequence[str]) -> tuple[str, ...]:
    unit = "s/token" if metric == "tpot" else "s"
    found = one.percentiles.get(metric, {})
    cells = [show(found[name].value, unit) if name in found else "-" for name in names]
    return one.name, str(one.sent), *cells
