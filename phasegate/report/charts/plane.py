"""A plane with two axes: frame, grid, ticks and names with units, ready for marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.report.charts.scale import Scale
from phasegate.report.charts.svg import WIDTH, element, line, text

LEFT, RIGHT, TOP, BOTTOM = 54.0, 16.0, 26.0, 46.0
HEIGHT = 270.0


@dataclass(frozen=True, slots=True)
class Plane:
    """Where marks go.

    Attributes:
        x, y: scales from values to pixels.
        height: of the whole picture.
    """

    x: Scale
    y: Scale
    height: float = HEIGHT

    @property
    def floor(self) -> float:
        """The pixel of the horizontal axis."""
        return self.height - BOTTOM

    def frame(
        self,
        x_name: str,
        y_name: str,
        *,
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_ticks: Sequence[tuple[float, str]] | None = None,
    ) -> str:
        """Grid, ticks and the axes' names; a name says its unit. Ticks are values with their words."""
        across = _words(self.x.ticks()) if x_ticks is None else x_ticks
        up = _words(self.y.ticks()) if y_ticks is None else y_ticks
        parts = []
        for value, words in up:
            at = self.y.at(value)
            parts += [line(LEFT, at, WIDTH - RIGHT, at, "grid"), text(LEFT - 7, at + 4, words, anchor="end")]
        for value, words in across:
            at = self.x.at(value)
            parts += [
                line(at, self.floor, at, self.floor + 4, "axis"),
                text(at, self.floor + 18, words, anchor="middle"),
            ]
        parts += [
            line(LEFT, self.floor, WIDTH - RIGHT, self.floor, "axis"),
            text((LEFT + WIDTH - RIGHT) / 2, self.height - 6, x_name, "axis-name", "middle"),
            text(4, 13, y_name, "axis-name"),
        ]
        return element("g", *parts)


def plane(
    x: tuple[float, float], y: tuple[float, float], *, height: float = HEIGHT, log_x: bool = False, log_y: bool = False
) -> Plane:
    """A plane whose axes run over these values."""
    across = Scale(x[0], x[1], LEFT, WIDTH - RIGHT, log_x)
    return Plane(across, Scale(y[0], y[1], height - BOTTOM, TOP, log_y), height)


def _words(values: Sequence[float]) -> list[tuple[float, str]]:
    return [(value, f"{value:g}") for value in values]
