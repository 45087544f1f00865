"""The page: whole in one file, the answer first, nothing run and nothing fetched, text from a server stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from phasegate.report.document.model import Failure
from phasegate.report.html.page import render_html
from tests.report.documents import document, full_document, load_of

VOID = {"meta", "link", "br", "path", "rect", "circle"}


class Outline(HTMLParser):
    """Elements of a page: balanced or not, headings in order, ids, and everything that points elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.pointers: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.pointers += [values[name] or "" for name in ("src", "href", "xlink:href", "action") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    """The page of a full document."""
    return render_html(full_document())


def test_elements_are_closed_in_order(page: str) -> None:
    assert Outline(page).open == []


def test_nothing_is_fetched_and_nothing_is_run(page: str) -> None:
    outline = Outline(page)
    assert outline.pointers == ["data:,"]
    assert "script" not in outline.tags
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_answer_stands_before_everything_else(page: str) -> None:
    outline = Outline(page)
    assert outline.headings[0].startswith("Prefill got slower: TTFT +40")
    first = page.split("<h2>")[0]
    for said in ("REGRESSION", "prefill", "95 % interval", "undo the change", "would have been found"):
        assert said in first


def test_sections_come_in_the_order_of_the_questions(page: str) -> None:
    wanted = ["gate", "diagnosis", "request", "phases", "laws", "load", "trend", "server", "roofline", "validity",
              "environment", "reproduce"]  # fmt: skip
    found = [one for one in Outline(page).ids if one in wanted]
    assert found == wanted


def test_a_section_without_data_is_one_line_that_says_what_fills_it() -> None:
    page = render_html(document())
    assert 'id="load"' not in page
    assert "run perf_tests/test_slo.py with --perf-slo" in page
    assert "Break point" in render_html(document(**{**load_of(broken=False), "load": _without_search()}))


def _without_search() -> object:
    load = load_of(broken=False)["load"]
    load.found = []
    return load


def test_text_from_elsewhere_stays_text() -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    page = render_html(
        document(failures=[Failure(evil, "FAIL", evil)], commands=[evil], invalid=[evil], remarks=[evil])
    )
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_figures_and_folded_parts_can_be_reached_by_keyboard(page: str) -> None:
    figures = re.findall(r"<figure[^>]*>", page)
    assert len(figures) >= 8
    assert all('tabindex="0"' in one for one in figures)
    assert page.count("<details") == page.count("<summary")


def test_both_lights_and_print_are_provided_for(page: str) -> None:
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 760px", "color-scheme: light dark"):
        assert rule in page


def test_a_page_is_the_same_each_time() -> None:
    assert render_html(full_document()) == render_html(full_document())


def test_a_page_is_light(page: str) -> None:
    assert len(page.encode()) < 400_000


def test_what_the_server_counted_stands_below_its_clock(page: str) -> None:
    """Only the columns that somebody fills, and what a reset made useless in words."""
    section = page.split('<section id="server">')[1].split("</section>")[0]
    heads = re.findall(r'<th scope="col">([^<]*)</th>', section)
    assert heads[:4] == ["workload", "TTFT", "prefill", "unexplained"]
    assert {"hand-off", "moved", "running", "waiting", "drafts accepted", "preemptions"} < set(heads)
    cells = re.findall(r'<td[^>]* data-name="([^"]*)">([^<]*)</td>', section)
    busy = dict(cells[cells.index(("workload or level", "16 at a time")) :])
    assert (busy["hand-off"], busy["moved"], busy["running"], busy["waiting"]) == ("80.0 ms", "12.5 MB", "12.0", "3.0")
    assert "counters were reset meanwhile" in section
    assert '<section id="server">' not in render_html(document(runner=None))
