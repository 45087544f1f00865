"""Gaps between token events as a histogram, with the percentiles that a reader looks for."""

from __future__ import annotations

from phasegate.core.units import axis_unit, format_seconds
from phasegate.report.charts.plane import plane
from phasegate.report.charts.scale import log_ticks, nice_ticks
from phasegate.report.charts.svg import Chart, element, line, picture, rect, text
from phasegate.report.document.model import Gaps, WorkloadTable


def gaps_chart(table: WorkloadTable) -> Chart | None:
    """The inter-chunk latencies of a workload; None where there are too few to draw."""
    gaps = table.gaps
    if gaps is None or len(gaps.counts) < 2:
        return None
    factor, unit = axis_unit(gaps.p50 or gaps.longest)
    most = max(gaps.counts)
    space = plane((gaps.edges[0], gaps.edges[-1]), (0.0, most * 1.15), log_x=True)
    across = [(tick / factor, f"{tick:g}") for tick in log_ticks(gaps.edges[0] * factor, gaps.edges[-1] * factor)]
    up = [(tick, f"{tick:g}") for tick in nice_ticks(0.0, most * 1.15, 4)]
    bars = [
        rect(space.x.at(low) + 0.5, space.y.at(count), space.x.at(high) - space.x.at(low) - 1,
             space.floor - space.y.at(count), "bar")
        for low, high, count in zip(gaps.edges, gaps.edges[1:], gaps.counts, strict=False)
    ]  # fmt: skip
    marks = []
    for name, value, y in (("p50", gaps.p50, 24.0), ("p99", gaps.p99, 38.0)):
        if gaps.edges[0] <= value <= gaps.edges[-1]:
            at = space.x.at(value)
            side, aside = ("end", -5) if at > 330 else ("start", 5)
            words = f"{name} {format_seconds(value)}"
            marks += [line(at, y - 6, at, space.floor, "mark"), text(at + aside, y, words, "label", side)]
    caption = _caption(gaps)
    frame = space.frame(f"gap between two chunks ({unit}, logarithmic)", "gaps", x_ticks=across, y_ticks=up)
    svg = picture(f"Gaps between chunks, workload {table.name}", caption, 440, space.height, frame,
                  element("g", *bars, class_="decode"), element("g", *marks))  # fmt: skip
    rows = tuple((name, format_seconds(value)) for name, value in (
        ("median", gaps.p50), ("p95", gaps.p95), ("p99", gaps.p99), ("longest", gaps.longest),
    ))  # fmt: skip
    return Chart(svg, "Inter-chunk latency", caption, ("percentile", "gap"), rows)


def _caption(gaps: Gaps) -> str:
    apart = gaps.n - gaps.same_read
    same = f"; {gaps.same_read} more came in one network read and have no gap" if gaps.same_read else ""
    return f"{apart} gaps between chunks of the answer{same}. The longest is {format_seconds(gaps.longest)}."
