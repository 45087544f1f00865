"""The pictures of the documentation are what the code draws from the run that is kept beside them."""

from __future__ import annotations

import re

import pytest

from benchmarks import phase_pictures
from phasegate.report.charts.standalone import standalone
from phasegate.report.charts.svg import Chart
from phasegate.report.document import from_json


@pytest.fixture(scope="module")
def charts() -> dict[str, Chart]:
    """All pictures, drawn anew."""
    text = phase_pictures.RUN.read_text(encoding="utf-8")
    return dict(phase_pictures.pictures(from_json(text, "phases.json")))


def test_every_picture_is_drawn_from_the_kept_run(charts: dict[str, Chart]) -> None:
    """Renew them with ``python -m benchmarks.phase_pictures --draw``."""
    for name, chart in charts.items():
        kept = (phase_pictures.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
        assert kept == standalone(chart), name


def test_the_page_shows_every_picture_with_the_caption_that_its_numbers_give(charts: dict[str, Chart]) -> None:
    page = phase_pictures.PAGE.read_text(encoding="utf-8")
    assert phase_pictures.filled(page, charts) == page
    assert sorted(re.findall(r"<!-- picture: ([\w-]+) -->", page)) == sorted(charts)


def test_a_page_with_an_old_caption_is_noticed(charts: dict[str, Chart]) -> None:
    page = phase_pictures.PAGE.read_text(encoding="utf-8").replace("TPOT", "tpot")
    assert phase_pictures.filled(page, charts) != page


def test_the_kept_run_says_how_to_repeat_it_and_names_no_folder_of_its_machine() -> None:
    document = from_json(phase_pictures.RUN.read_text(encoding="utf-8"), "phases.json")
    assert document.reproduce.commands[0].startswith("pytest perf_tests/test_prefill.py")
    assert not re.search(r'"/(?:root|work|home|tmp|Users)/', phase_pictures.RUN.read_text(encoding="utf-8"))
