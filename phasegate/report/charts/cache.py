"""What a prefix cache saves: TTFT of the first call, of the second, and of a new prompt of the same length."""

from __future__ import annotations

from phasegate.core.units import axis_unit, format_percent, format_seconds
from phasegate.report.charts.scale import Scale, nice_ticks
from phasegate.report.charts.svg import WIDTH, Chart, element, hatched, line, picture, rect, text
from phasegate.report.document.model import CellRow, WorkloadTable
from phasegate.report.document.words import show

LEFT, RIGHT, TOP, STEP, BAR = 8.0, 14.0, 22.0, 48.0, 20.0

ROLES = {
    "cold": "first call, nothing cached",
    "cached": "the same prompt again",
    "control": "control: a new prompt of that length",
    "first": "first prompt with this beginning",
    "next": "same beginning, other end",
}
"""Role of a call -> words for it."""


def cache_chart(table: WorkloadTable) -> Chart | None:
    """One bar for each call; None where prompts share nothing or a call has no TTFT."""
    if table.prefix == "unique" or len({cell.input_tokens for cell in table.cells}) != 1:
        return None
    cells = [cell for cell in table.cells if cell.ttft is not None and cell.ttft.value is not None]
    if len(cells) < 2:
        return None
    ends = [end for cell in cells if cell.ttft for end in (cell.ttft.value, cell.ttft.high) if end is not None]
    scale = Scale(0.0, max(ends) * 1.05, LEFT, WIDTH - RIGHT)
    floor = TOP + STEP * len(cells)
    body = [part for number, cell in enumerate(cells) for part in _bar(cell, scale, TOP + STEP * number)]
    caption = _caption(cells)
    svg = picture(f"TTFT with and without a cached prefix, workload {table.name}", caption, WIDTH, floor + 40,
                  element("g", *body, class_="prefill"), *_axis(scale, floor))  # fmt: skip
    rows = tuple(
        (ROLES.get(cell.role, cell.role), show(cell.ttft.value if cell.ttft else None, "s"), str(cell.requests))
        for cell in cells
    )
    return Chart(svg, "TTFT with and without a cached prefix", caption, ("call", "TTFT", "requests"), rows)


def _bar(cell: CellRow, scale: Scale, y: float) -> list[str]:
    found = cell.ttft
    assert found is not None
    assert found.value is not None
    shape = hatched if cell.role in ("cached", "next") else rect
    width = max(scale.at(found.value) - LEFT, 1.0)
    said = f"{ROLES.get(cell.role, cell.role)}: {format_seconds(found.value)}"
    parts = [text(LEFT, y, said, "label"), shape(LEFT, y + 6, width, BAR, "bar")]
    if found.low is not None and found.high is not None:
        low, high, middle = scale.at(found.low), scale.at(found.high), y + 6 + BAR / 2
        parts += [line(low, middle, high, middle, "whisker")]
        parts += [line(end, middle - 5, end, middle + 5, "whisker") for end in (low, high)]
    return parts


def _axis(scale: Scale, y: float) -> list[str]:
    factor, unit = axis_unit(scale.high)
    parts = [line(LEFT, y, WIDTH - RIGHT, y, "axis")]
    for tick in nice_ticks(0.0, scale.high * factor):
        at = scale.at(tick / factor)
        anchor = "start" if at < 20 else "end" if at > WIDTH - 24 else "middle"
        parts += [line(at, y, at, y + 4, "axis"), text(at, y + 17, f"{tick:g}", anchor=anchor)]
    return [*parts, text(WIDTH / 2, y + 35, f"TTFT ({unit}), median with 95 % interval", "axis-name", "middle")]


def _caption(cells: list[CellRow]) -> str:
    by_role = {cell.role: cell.ttft.value for cell in cells if cell.ttft is not None}
    before, after = by_role.get("cold", by_role.get("first")), by_role.get("cached", by_role.get("next"))
    if not before or after is None:
        return ""
    said = f"The second call saves {format_percent(1 - after / before, digits=0)} of TTFT"
    control = by_role.get("control")
    return (
        f"{said}; the control differs by {format_percent(control / before - 1, signed=True)}."
        if control
        else f"{said}."
    )
