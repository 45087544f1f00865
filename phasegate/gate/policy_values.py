"""The values of a policy file, each from what YAML makes of it: a converter for each kind, and what it takes in words.

A converter raises `ValueError` or `TypeError` for what it does not take; the reader makes one line of that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from phasegate.core.settings_file import list_of, text
from phasegate.core.units import parse_duration
from phasegate.gate.facts import MetricFacts, facts_of
from phasegate.gate.slo import parse_percentile

T = TypeVar("T")

FINGERPRINT_KEYS = ("engine", "model", "hardware", "settings")

SHARE = "a fraction above 0 and below 1, such as 0.05 for 5 %"
SPAN = "a duration with its unit, such as 500us or 2ms"
SLOWDOWN = "a fraction such as 0.05 or a percentage such as 5%; from 300 % on only a percentage, as 3 may mean 3 %"
TIMES = "a number of at least 1, such as 3, or off"

_PLAIN_MOST = 3.0
"""A bare number from here on is almost surely meant in per cent: 5 for 5 %, and not for six times as long."""

_PERCENTAGE = re.compile(r"^\s*(\d+(?:\.\d+)?|\.\d+)\s*%\s*$")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return number


def share(value: Any) -> float:
    """A fraction above 0 and below 1."""
    number = _number(value)
    if not 0 < number < 1:
        raise ValueError
    return number


def fraction(value: Any) -> float:
    """A fraction from 0 to below 1."""
    number = _number(value)
    if not 0 <= number < 1:
        raise ValueError
    return number


def slowdown(value: Any) -> float:
    """How much slower, as a fraction from 0 on: a number, or a text in per cent for any size."""
    if isinstance(value, str):
        found = _PERCENTAGE.match(value)
        if found is None:
            raise ValueError
        return _finite(float(found.group(1)) / 100.0)
    number = _number(value)
    if not 0 <= number < _PLAIN_MOST:
        raise ValueError
    return number


def tolerance(value: Any) -> float:
    """A slowdown that must be found; 0 would ask for what no measurement can show."""
    found = slowdown(value)
    if found == 0:
        raise ValueError
    return found


def times_or_off(value: Any) -> float | None:
    """A factor from 1 on, or None for ``off``, which YAML reads as false."""
    if value is False or value == "off":
        return None
    number = _number(value)
    if not 1 <= number < math.inf:
        raise ValueError
    return number


def duration(value: Any) -> float:
    """A span in seconds."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    # 200 * 1e-6 is not the float nearest to 0.0002; a picosecond is far below any clock.
    return round(parse_duration(text(value), source=""), 12)


def percentile(value: Any) -> float:
    """A percentile in per cent."""
    return parse_percentile(text(value), source="")


def fingerprint_key(value: Any) -> str:
    """A key of the server's fingerprint, or one setting in it."""
    name = text(value)
    if name.split(".")[0] not in FINGERPRINT_KEYS:
        raise ValueError
    return name


def metric(declared: Mapping[str, MetricFacts]) -> Callable[[Any], str]:
    """A converter for the short names of metrics that can be judged, declared ones among them."""

    def convert(value: Any) -> str:
        facts = facts_of(text(value), declared)
        if facts is None:
            raise ValueError
        return facts.name

    return convert


def list_or_empty(convert: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """As `list_of`, but an empty list will do."""

    def convert_all(value: Any) -> tuple[T, ...]:
        return () if value == [] else list_of(convert)(value)

    return convert_all
