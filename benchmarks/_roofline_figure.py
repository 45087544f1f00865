"""A roofline as SVG: operations a second over operations a byte, both on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from phasegate.gate.roofline import HardwareFacts

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 440, 80, 56, 24, 24
X_RANGE, Y_RANGE = (0.1, 10_000.0), (1e9, 1e12)


@dataclass(frozen=True, slots=True)
class Point:
    """One phase: operations a byte and operations a second."""

    name: str
    intensity: float
    rate: float


def draw(path: Path, hardware: HardwareFacts, points: Sequence[Point]) -> None:
    """Write the figure; peak and bandwidth of the hardware are the roof."""
    assert hardware.peak is not None
    assert hardware.reading is not None
    parts = [*_axes(), *_roof(hardware.peak, hardware.reading, hardware.format)]
    for number, point in enumerate(points):
        parts += _mark(point, number)
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


def _roof(peak: float, reading: float, number_format: str) -> list[str]:
    ridge = peak / reading
    start = max(X_RANGE[0], Y_RANGE[0] / reading)
    line = f"M{_x(start):.1f} {_y(start * reading):.1f}L{_x(ridge):.1f} {_y(peak):.1f}H{WIDTH - RIGHT}"
    return [
        f'<path d="{line}" fill="none" stroke="#333" stroke-width="2"/>',
        f'<text x="{WIDTH - RIGHT}" y="{_y(peak) - 8:.1f}" text-anchor="end">'
        f"peak {peak / 1e9:.0f} GFLOP/s ({escape(number_format)})</text>",
        f'<text x="{_x(start * 1.6):.1f}" y="{_y(start * 1.6 * reading) - 14:.1f}">{reading / 1e9:.1f} GB/s</text>',
    ]


def _mark(point: Point, number: int) -> list[str]:
    decode = point.name.startswith("decode")
    colour, x, y = ("#1f6fb4" if decode else "#c0561d"), _x(point.intensity), _y(point.rate)
    # Labels of one phase stand below each other, so that close points can be told apart.
    label_y = y + (22 if decode else 26) + 15 * (number // 2)
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>',
        f'<text x="{x + 10:.1f}" y="{label_y:.1f}" fill="{colour}">{escape(point.name)}: '
        f"{point.rate / 1e9:.1f} GFLOP/s</text>",
    ]
