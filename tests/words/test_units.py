"""Durations are read with their unit and written with the unit that suits them."""

from __future__ import annotations

import math

import pytest

from phasegate.core.units import format_percent, format_seconds, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("5s", 5.0), (" 2.5 s ", 2.5), ("5m", 300.0), ("100us", 1e-4), ("1h", 3600.0)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text, source="x") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["500", "", "ms", "-5ms", "5 min", "1e3ms", "nan s"])
def test_anything_else_is_refused_with_its_source(text: str) -> None:
    with pytest.raises(ValueError, match=r"--perf-timeout: .* is not a duration"):
        parse_duration(text, source="--perf-timeout")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000123, "0.12 ms"), (0.0123, "12.3 ms"), (0.123, "123 ms"), (1.234, "1.23 s"), (12.34, "12.3 s"),
        (90.0, "1.5 min"), (None, "-"), (math.nan, "-"), (math.inf, "inf"), (0.0, "0.00 ms"),
    ],
)  # fmt: skip
def test_a_span_is_written_in_the_unit_that_suits_it(seconds: float | None, text: str) -> None:
    assert format_seconds(seconds) == text


def test_fractions_are_written_as_percentages() -> None:
    assert format_percent(0.0512, signed=True) == "+5.1 %"
    assert format_percent(None) == "-"
    assert format_percent(math.inf, signed=True) == "+inf %"
