"""The reference page says what the code's own tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.wire.openai_stream import ERROR_KINDS, FLAGS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "streams.md"


def missing_rows(page: str, table: dict[str, str]) -> list[str]:
    """Words whose row is not on the page, or words on the page that the table lacks."""
    rows = [f"| `{word}` | {meaning} |" for word, meaning in table.items()]
    return [row for row in rows if row not in page.splitlines()]


@pytest.mark.parametrize("table", [FLAGS, ERROR_KINDS], ids=["flags", "error kinds"])
def test_every_word_stands_on_the_page_with_its_meaning(table: dict[str, str]) -> None:
    """Row by row, word for word."""
    assert missing_rows(PAGE.read_text(encoding="utf-8"), table) == []


def test_the_page_names_no_flag_or_kind_that_is_gone() -> None:
    """Every two-column row under those tables is a row of the code."""
    page = PAGE.read_text(encoding="utf-8")
    tables = page.split("| error kind | meaning |")[1]
    words = {line.split("`")[1] for line in tables.splitlines() if line.startswith("| `")}
    assert words == set(FLAGS) | set(ERROR_KINDS)


def test_a_changed_meaning_is_seen() -> None:
    """Shown failing: a row that the page words differently."""
    page = PAGE.read_text(encoding="utf-8")
    assert missing_rows(page, {"no_done": "Something else."}) == ["| `no_done` | Something else. |"]
