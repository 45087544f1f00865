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
    size = abs(seconds)
    if size >= 60:
        return f"{seconds / 60:.1f} min"
    if size >= 10:
        return f"{seconds:.1f} s"
    if size >= 1:
        return f"{seconds:.2f} s"
    ms = milliseconds(seconds)
    if size >= 0.1:
        return f"{ms:.0f} ms"
    if size >= 0.01:
        return f"{ms:.1f} ms"
    return f"{ms:.2f} ms"


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
