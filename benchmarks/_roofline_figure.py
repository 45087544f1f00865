"""A roofline as SVG: operations a second over operations a byte, both on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from phasegate.diagnose.roofline import HardwareFacts

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 440, 80, 56, 24, 24
X_RANGE, Y_RANGE = (0.1, 10_000.0), (1e9, 1e12)


@dataclass(frozen=True, slots=True)
class Point:
    """One phase: operations a byte and operations a second."""

    name: str
    intensity: float
    rate: float


def draw(path: Path, roofs: Sequence[HardwareFacts], points: Sequence[Point]) -> None:
    """Write the figure. The roofs differ in their peak; their bandwidth is one."""
    parts = _axes()
    for number, roof in enumerate(roofs):
        parts += _roof(roof, first=number == 0)
    for point in points:
        parts += _dot(point)
    parts += _labels([point for point in points if point.name.startswith("decode")], beside=True)
    parts += _labels([point for point in points if not point.name.startswith("decode")], beside=False)
    body = "\n".join(parts)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="Roofline of the embedded engine">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )
    part = path.with_suffix(".part")
    part.write_text(svg, encoding="utf-8")
    part.replace(path)


def _x(value: float) -> float:
    low, high = map(math.log10, X_RANGE)
    return LEFT + (math.log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    low, high = map(math.log10, Y_RANGE)
    return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - BOTTOM - TOP)


def _axes() -> list[str]:
    parts = []
    for power in range(-1, 5):
        x = _x(10.0**power)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(9, 13):
        y = _y(10.0**power)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10 ** (power - 9):,} G</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">operations for every byte read</text>')
    parts.append(
        f'<text transform="translate(18 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">operations a second</text>'
    )
    return parts


def _roof(roof: HardwareFacts, *, first: bool) -> list[str]:
    peak, reading, ridge = roof.peak, roof.reading, roof.ridge
    assert peak is not None
    assert reading is not None
    assert ridge is not None
    start = max(X_RANGE[0], Y_RANGE[0] / reading) if first else ridge
    line = f"M{_x(start):.1f} {_y(start * reading):.1f}L{_x(ridge):.1f} {_y(peak):.1f}H{WIDTH - RIGHT}"
    style = "" if first else ' stroke-dasharray="6 4"'
    parts = [
        f'<path d="{line}" fill="none" stroke="#333" stroke-width="2"{style}/>',
        f'<text x="{WIDTH - RIGHT}" y="{_y(peak) - 8:.1f}" text-anchor="end">'
        f"peak {peak / 1e9:.0f} GFLOP/s ({escape(roof.format)})</text>",
    ]
    if first:
        x, y = _x(start * 1.1), _y(start * 3 * reading)
        parts.append(f'<text x="{x:.1f}" y="{y - 14:.1f}">{reading / 1e9:.1f} GB/s</text>')
    return parts


def _colour(point: Point) -> str:
    return "#1f6fb4" if point.name.startswith("decode") else "#c0561d"


def _dot(point: Point) -> list[str]:
    return [f'<circle cx="{_x(point.intensity):.1f}" cy="{_y(point.rate):.1f}" r="5" fill="{_colour(point)}"/>']


def _labels(points: Sequence[Point], *, beside: bool) -> list[str]:
    """Beside each point, or, where points lie close together, in a list below the lowest of them."""
    parts = []
    lowest = max((_y(point.rate) for point in points), default=0.0)
    for number, point in enumerate(sorted(points, key=lambda one: -one.rate)):
        x, y = _x(point.intensity) + 12, _y(point.rate) + 5
        if not beside:
            x, y = _x(points[0].intensity) - 60, lowest + 30 + 17 * number
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{_colour(point)}">{escape(point.name)}: '
            f"{point.rate / 1e9:.1f} GFLOP/s</text>"
        )
    return parts
