"""Units: seconds and tokens inside, milliseconds only in words for people.

This is the only module that knows "ms". Everything else keeps seconds and fractions (0.05, never 5).
"""

from __future__ import annotations

import math
import re

_SECONDS_PER = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|m|h)\s*$")


def parse_duration(text: str, *, source: str) -> float:
    """Seconds meant by a duration such as ``"500ms"``, ``"2.5s"`` or ``"5m"``.

    A bare number is refused: whether it means seconds or milliseconds is the commonest mistake with
    latency settings. ``source`` says where the text came from and appears in the error.

    Raises:
        ValueError: the text is not a number followed by us, ms, s, m or h.
    """
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{source}: {text!r} is not a duration; write a number and a unit, such as 500ms or 5s")
    return float(match.group(1)) * _SECONDS_PER[match.group(2)]


def milliseconds(seconds: float) -> float:
    """The same span in milliseconds, for output that fixes its unit."""
    return seconds * 1e3


def seconds_from_ms(ms: float) -> float:
    """The same span in seconds, for input that fixes its unit."""
    return ms / 1e3


def format_seconds(seconds: float | None) -> str:
    """A span for a reader: three significant digits with the unit that suits its size.

    None and NaN, which mean "undefined", print as a dash; infinity (a failed request) as "inf".
    """
    if seconds is None or math.isnan(seconds):
        return "-"
    if math.isinf(seconds):
        return "inf" if seconds > 0 else "-inf"
    factor, unit, digits = _scale(seconds)
    return f"{seconds * factor:.{digits}f} {unit}"


def format_span(middle: float, low: float, high: float) -> str:
    """A value with its interval in the value's own unit: ``288 [258, 432] ms``.

    An infinite end, which means that too few values were measured, leaves the interval out.
    """
    if not all(map(math.isfinite, (middle, low, high))):
        return format_seconds(middle)
    factor, unit, digits = _scale(middle)
    shown = [f"{value * factor:.{digits}f}" for value in (middle, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}] {unit}"


def axis_unit(largest: float) -> tuple[float, str]:
    """Factor and unit for the axis of a chart whose largest value is so many seconds: ``(1000.0, "ms")``."""
    factor, unit, _ = _scale(largest)
    return factor, unit


def _scale(seconds: float) -> tuple[float, str, int]:
    """Factor, unit and digits that show a span with about three significant digits."""
    size = abs(seconds)
    for least, factor, unit, digits in (
        (60.0, 1 / 60, "min", 1),
        (10.0, 1.0, "s", 1),
        (1.0, 1.0, "s", 2),
        (0.1, 1e3, "ms", 0),
        (0.01, 1e3, "ms", 1),
    ):
        if size >= least:
            return factor, unit, digits
    return 1e3, "ms", 2


def format_percent(fraction: float | None, *, signed: bool = False, digits: int = 1) -> str:
    """A fraction as a percentage for a reader: 0.051 -> ``5.1 %``, signed: ``+5.1 %``. None prints a dash."""
    if fraction is None or math.isnan(fraction):
        return "-"
    if math.isinf(fraction):
        return "+inf %" if fraction > 0 else "-inf %"
    sign = "+" if signed else ""
    return f"{fraction * 100:{sign}.{digits}f} %"


def format_rate(per_second: float | None, what: str) -> str:
    """A rate for a reader: ``1,234 tokens/s``."""
    if per_second is None or math.isnan(per_second):
        return "-"
    text = f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"
    return f"{text} {what}/s"
