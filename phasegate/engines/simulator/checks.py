"""What a value of a setting must be: a test, and the words for a message when it fails."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any


def number(value: object) -> bool:
    """A finite number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def at_least(least: float) -> Callable[[Any], bool]:
    """A test for numbers from ``least`` up."""
    return lambda value: number(value) and value >= least


def above_zero(value: Any) -> bool:
    """A number above 0."""
    return number(value) and value > 0


def whole(least: int) -> Callable[[Any], bool]:
    """A test for whole numbers from ``least`` up."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def list_of_whole(value: Any) -> bool:
    """A list of whole numbers from 1 up."""
    return isinstance(value, (list, tuple)) and all(whole(1)(item) for item in value)


def fraction(value: Any) -> bool:
    """A number from 0 to 1."""
    return number(value) and 0 <= value <= 1


def zero_or_more_or_none(value: Any) -> bool:
    """None, or a number of 0 or more."""
    return value is None or (number(value) and value >= 0)


def true_or_false(value: Any) -> bool:
    """One of the two."""
    return isinstance(value, bool)


def name(value: Any) -> bool:
    """A text that is not empty."""
    return isinstance(value, str) and bool(value)


Check = tuple[Callable[[Any], bool], str]
"""A test, and what would pass it in words."""

NOT_NEGATIVE: Check = (at_least(0), "a number of 0 or more")
POSITIVE: Check = (above_zero, "a number above 0")
COUNT: Check = (whole(0), "a whole number of 0 or more")
SIZE: Check = (whole(1), "a whole number of 1 or more")
CHANCE: Check = (fraction, "a fraction from 0 to 1")
NUMBER: Check = (number, "a number")
OPTIONAL: Check = (zero_or_more_or_none, "null or a number of 0 or more")
SWITCH: Check = (true_or_false, "true or false")
NAME: Check = (name, "a name")


def is_member(kind: type[enum.Enum]) -> Check:
    """A check for members of an enumeration."""
    return (lambda value: isinstance(value, kind), f"a {kind.__name__}")
