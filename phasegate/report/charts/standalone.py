"""A chart as a file of its own: the same picture with its colours inside, light or dark as the reader's system is."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from phasegate.report.charts.svg import Chart


@cache
def stylesheet() -> str:
    """Palette and rules of all charts."""
    folder = files("phasegate.report.charts")
    return "".join((folder / name).read_text(encoding="utf-8") for name in ("palette.css", "chart.css"))


def standalone(chart: Chart) -> str:
    """The picture as an SVG file, on a ground of its own so that it can be shown anywhere."""
    head, rest = chart.svg.split(">", 1)
    ground = '<rect width="100%" height="100%" fill="var(--card)"/>'
    return f"{head}><style>{stylesheet()}</style>{ground}{rest}\n"
