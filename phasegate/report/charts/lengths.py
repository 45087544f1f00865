"""How a phase answers to a length: TTFT over the prompt, total over the output, each with its straight line; TPOT."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from phasegate.core.units import axis_unit, format_seconds
from phasegate.report.charts.plane import Plane, plane
from phasegate.report.charts.scale import nice_ticks
from phasegate.report.charts.svg import Chart, circle, diamond, element, line, path, picture, text
from phasegate.report.document.model import CellRow, Estimate, Fit, WorkloadTable
from phasegate.report.document.words import metric_name, show

ROOM = 1.08
"""A chart ends a little above its highest value."""

LEGEND = 22.0
"""Pixels below the picture for what its marks mean."""


def length_chart(table: WorkloadTable) -> Chart | None:
    """TTFT over prompt length, or total over output length, with the fitted line; None where no length varies."""
    if table.axis is None:
        return None
    metric = "ttft" if table.axis == "prompt" else "e2el"
    fit = next((one for one in table.fits if one.metric == metric), None)
    title = "TTFT over prompt length" if metric == "ttft" else "Total latency over output length"
    return _chart(table, metric, title, _fit_words(fit, metric, _ttft(table)), fit)


def per_token_chart(table: WorkloadTable) -> Chart | None:
    """TPOT over the length that varies; None where no length varies or no request has a TPOT."""
    if table.axis is None or not any(cell.tpot for cell in table.cells):
        return None
    caption = "A token should cost about the same at every length."
    return _chart(table, "tpot", f"TPOT over {table.axis} length", caption, None)


START_IS_TTFT = 0.15
"""Part of TTFT by which the line of the totals may start beside it and still be said to start where TTFT ends."""


def _ttft(table: WorkloadTable) -> float | None:
    """The median of the cells' TTFT."""
    values = [one.value for cell in table.cells if (one := cell.ttft) is not None and one.value is not None]
    return median(values) if values else None


def _fit_words(fit: Fit | None, metric: str, ttft: float | None) -> str:
    if fit is None:
        return ""
    if metric == "ttft":
        speed = f", {1 / fit.slope:,.0f} prompt tokens a second" if fit.slope > 0 else ""
        return f"Prefill adds {format_seconds(fit.slope)} for each prompt token{speed}; it starts at " \
               f"{format_seconds(fit.intercept)}."  # fmt: skip
    start = format_seconds(fit.intercept)
    if ttft is None:
        where = ""
    elif abs(fit.intercept - ttft) <= START_IS_TTFT * ttft:
        where = ", where TTFT ends"
    else:
        where = f", and TTFT is {format_seconds(ttft)}"
    return f"Each further token adds {format_seconds(fit.slope)} (TPOT); the line starts at {start}{where}."


def _chart(table: WorkloadTable, metric: str, title: str, caption: str, fit: Fit | None) -> Chart | None:
    cells = [cell for cell in table.cells if _estimate(cell, metric) is not None]
    if not cells:
        return None
    xs = [_length(cell, table.axis) for cell in cells]
    found = [one for cell in cells if (one := _estimate(cell, metric)) is not None]
    values = [value for cell in cells for value in _shown_samples(cell, metric)]
    values += [end for one in found for end in (one.value, one.high) if end is not None]
    top = max(values) * ROOM
    factor, unit = axis_unit(top)
    space = plane((0.0, max(xs) * 1.06), (0.0, top))
    per = "/token" if metric == "tpot" else ""
    ticks = [(tick / factor, f"{tick:g}") for tick in nice_ticks(0.0, top * factor)]
    frame = space.frame(f"{table.axis} length (tokens)", f"{metric_name(metric)} ({unit}{per})", y_ticks=ticks)
    marks = [_marks(space, cell, x, metric) for cell, x in zip(cells, xs, strict=True)]
    line_of_fit = _fit_line(space, fit, max(xs), metric) if fit is not None else ""
    class_ = "prefill" if metric == "ttft" else "decode" if metric == "tpot" else "both"
    svg = picture(
        f"{title}, workload {table.name}", caption or title, 440, space.height + LEGEND, frame,
        element("g", line_of_fit, *marks, class_=class_), _legend(space.height + LEGEND - 6, with_fit=fit is not None),
    )  # fmt: skip
    return Chart(svg, title, caption, (f"{table.axis} tokens", metric_name(metric), "95 % interval", "requests"),
                 tuple(_table_row(x, one, metric) for x, one in zip(xs, found, strict=True)))  # fmt: skip


def _length(cell: CellRow, axis: str | None) -> float:
    return float(cell.input_tokens if axis == "prompt" else cell.output_tokens)


def _estimate(cell: CellRow, metric: str) -> Estimate | None:
    found = {"ttft": cell.ttft, "tpot": cell.tpot, "e2el": cell.e2el}[metric]
    return found if found is not None and found.value is not None else None


def _shown_samples(cell: CellRow, metric: str) -> Sequence[float]:
    return cell.samples.get(metric, ())


def _marks(space: Plane, cell: CellRow, x: float, metric: str) -> str:
    """Single requests as faint dots, the median as a diamond, its interval as a bar."""
    found = _estimate(cell, metric)
    assert found is not None
    assert found.value is not None
    at = space.x.at(x)
    parts = [circle(at, space.y.at(value), 2.2, "sample") for value in _shown_samples(cell, metric)]
    if found.low is not None and found.high is not None:
        low, high = space.y.at(found.low), space.y.at(found.high)
        parts += [line(at, low, at, high, "interval")]
        parts += [line(at - 5, end, at + 5, end, "interval") for end in (low, high)]
    return element("g", *parts, diamond(at, space.y.at(found.value), 5, "median"))


def _fit_line(space: Plane, fit: Fit, longest: float, metric: str) -> str:
    shift = 0.0 if metric == "ttft" else 1.0
    ends = [(0.0 + shift, fit.intercept), (longest * 1.06, fit.intercept + fit.slope * (longest * 1.06 - shift))]
    return path([(space.x.at(x), space.y.at(max(y, 0.0))) for x, y in ends], "fit")


def _legend(y: float, *, with_fit: bool) -> str:
    """What the marks mean, in a strip below the picture."""
    parts = [diamond(62, y - 4, 4.5, "median"), text(72, y, "median, 95 % interval", "legend")]
    parts += [circle(236, y - 4, 2.4, "sample"), text(244, y, "one request", "legend")]
    if with_fit:
        parts += [path([(330, y - 4), (350, y - 4)], "fit"), text(356, y, "fitted line", "legend")]
    return element("g", *parts, class_="key")


def _table_row(x: float, one: Estimate, metric: str) -> tuple[str, ...]:
    unit = "s/token" if metric == "tpot" else "s"
    ends = f"{show(one.low, unit)} to {show(one.high, unit)}" if one.low is not None and one.high is not None else "-"
    return f"{x:g}", show(one.value, unit), ends, str(one.n)
