"""The page on the laws quotes the margins that the code uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phasegate.stats.laws import margins

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "laws.md"
QUOTE = re.compile(r"`([A-Z_]+) = ([0-9.]+)`")


def _differing(page: str) -> list[str]:
    """Names whose quoted value is not the code's."""
    return [name for name, value in QUOTE.findall(page) if getattr(margins, name, None) != float(value)]


def test_every_quoted_margin_is_the_one_in_the_code() -> None:
    """And every margin but the error probability is quoted."""
    page = PAGE.read_text(encoding="utf-8")
    assert _differing(page) == []
    known = {name for name in vars(margins) if name.isupper()} - {"ALPHA"}
    assert {name for name, _ in QUOTE.findall(page)} == known


@pytest.mark.parametrize("line", ["`TTFT_RISE_MIN = 0.11`", "`NO_SUCH_MARGIN = 1`"])
def test_the_check_finds_a_stale_quote(line: str) -> None:
    """Another value, or a name that is gone."""
    assert _differing(line)
