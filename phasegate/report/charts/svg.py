"""The few elements of SVG that the charts need, and a chart as the pages take it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 440
"""Width of a chart's own coordinates: narrow, so that text stays readable when a phone shrinks it to 330 pixels."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, what it says, and the numbers in it.

    Attributes:
        svg: the picture; its ``title`` and ``desc`` speak to screen readers.
        title: a heading.
        caption: what to see in it, in one or two sentences.
        columns, rows: the same numbers as a table.
    """

    svg: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def element(name: str, *children: str, **attributes: float | str | None) -> str:
    """One element; attributes in Python's spelling (``stroke_width``, ``class_``), None leaves one out.

    Children are SVG already: text goes through `text` or `escape`.
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_number(one)}"' for key, one in attributes.items() if one is not None
    )
    inner = "".join(children)
    return f"<{name}{said}>{inner}</{name}>" if inner else f"<{name}{said}/>"


def _number(value: float | str) -> str:
    return escape(value, quote=True) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, words: str, class_: str = "tick", anchor: str = "start", **more: float | str) -> str:
    """Words at a place; ``anchor`` is ``start``, ``middle`` or ``end``."""
    return element("text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor, **more)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rect(x: float, y: float, width: float, height: float, class_: str, **more: float | str) -> str:
    """A rectangle; a negative size is drawn as none."""
    return element("rect", x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=class_, **more)


def circle(x: float, y: float, r: float, class_: str) -> str:
    """A circle."""
    return element("circle", cx=x, cy=y, r=r, class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    """A line through points."""
    return element("polyline", points=" ".join(f"{x:.2f},{y:.2f}" for x, y in points), class_=class_, fill="none")


def diamond(x: float, y: float, r: float, class_: str) -> str:
    """A square on its corner."""
    points = " ".join(f"{a:.2f},{b:.2f}" for a, b in ((x, y - r), (x + r, y), (x, y + r), (x - r, y)))
    return element("polygon", points=points, class_=class_)


def hatched(x: float, y: float, width: float, height: float, class_: str) -> str:
    """A rectangle with stripes over its colour, so that it differs from a plain one without colour as well."""
    mark = f"h{hashlib.sha256(f'{x}{y}{width}{height}'.encode()).hexdigest()[:8]}"
    stripes = element("path", d="M0 0V7", class_="stripe")
    pattern = element(
        "pattern", stripes, id=mark, width=7, height=7, patternUnits="userSpaceOnUse", patternTransform="rotate(45)"
    )
    return element(
        "g",
        element("defs", pattern),
        rect(x, y, width, height, class_),
        rect(x, y, width, height, "hatch", fill=f"url(#{mark})"),
    )


def picture(title: str, description: str, width: float, height: float, *body: str, class_: str = "chart") -> str:
    """A whole SVG, scaled by its view box; ``title`` and ``description`` are what a screen reader says."""
    mark = hashlib.sha256(f"{title}|{description}|{width}x{height}".encode()).hexdigest()[:8]
    return element(
        "svg",
        element("title", escape(title), id=f"t{mark}"),
        element("desc", escape(description), id=f"d{mark}"),
        *body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"t{mark} d{mark}",
        class_=class_,
    )
