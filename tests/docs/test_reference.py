"""Generated pages of the reference are up to date."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs.reference_pages import FOLDER, PAGES


@pytest.mark.parametrize(("name", "page"), PAGES.items(), ids=list(PAGES))
def test_a_generated_page_says_what_the_code_says(name: str, page: Callable[[], str]) -> None:
    """Otherwise: python -m tests.docs.reference_pages"""
    assert (FOLDER / name).read_text(encoding="utf-8") == page()
