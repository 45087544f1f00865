"""The page in a real browser: no complaint, nothing fetched, nothing wider than its window, every part reachable.

Skipped where there is no Chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks._chromium import Chromium, find_chromium
from phasegate.report.html.page import render_html
from tests.report.documents import document, full_document

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine"),
]

PAGES = ("full", "pass", "invalid")

FIRST_SCREEN = """
(() => {
  const card = document.querySelector('.verdict');
  return [...card.querySelectorAll('h1, dt, dd')].filter(e => e.getBoundingClientRect().bottom <= innerHeight)
    .map(e => e.innerText).join('\\n');
})()
"""

SMALLEST_TEXT = """
Math.min(...[...document.querySelectorAll('svg.chart text')].filter(e => e.getBoundingClientRect().width > 0)
  .map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))
"""

OVERLAPS = """
(() => {
  const found = [];
  for (const svg of document.querySelectorAll('svg.chart')) {
    const boxes = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()])
      .filter(([, b]) => b.width > 0);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 2 && high > 4) found.push(a + ' | ' + b);
    }));
  }
  return found;
})()
"""

CUT = """
[...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const s = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(e => {
    const b = e.getBoundingClientRect();
    return b.width > 0 && (b.left < s.left - 2 || b.right > s.right + 2);
  }).map(e => e.textContent);
})
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """One browser for all tests."""
    program = find_chromium()
    assert program is not None
    with Chromium(program) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages with everything, with a plain pass, and of a run that proves nothing."""
    folder = tmp_path_factory.mktemp("pages")
    made = {"full": full_document(), "pass": document(), "invalid": document(invalid=["3 of 4 requests failed"])}
    for name, one in made.items():
        (folder / f"{name}.html").write_text(render_html(one), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_a_page_opens_without_a_complaint_and_fits_its_window(
    browser: Chromium, pages: Path, name: str, width: int
) -> None:
    page = pages / f"{name}.html"
    browser.open(page, width=width, height=800)
    assert browser.complaints == []
    assert browser.requests == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_that_fetches_is_noticed(browser: Chromium, tmp_path: Path) -> None:
    """The checks above are shown failing: a missing picture, a script error, and a line that is too wide."""
    page = tmp_path / "bad.html"
    page.write_text("<img src='gone.png'><script>nothing()</script><div style='width:2000px'>x</div>")
    browser.open(page, width=360, height=800)
    assert any("nothing is not defined" in one or "Uncaught" in one for one in browser.complaints)
    assert len(browser.requests) == 2
    assert browser.evaluate("document.documentElement.scrollWidth") > 360


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (360, 800)])
def test_the_first_screen_answers_every_question(browser: Chromium, pages: Path, width: int, height: int) -> None:
    browser.open(pages / "full.html", width=width, height=height)
    first = browser.evaluate(FIRST_SCREEN)
    for said in ("Prefill got slower", "+40", "How much", "How sure", "95 % interval", "What to do", "undo the change"):
        assert said in first


@pytest.mark.parametrize(("width", "least"), [(1280, 10.5), (360, 9.0)])
def test_words_in_charts_can_be_read_stand_apart_and_are_not_cut(
    browser: Chromium, pages: Path, width: int, least: float
) -> None:
    browser.open(pages / "full.html", width=width, height=800)
    assert browser.evaluate(SMALLEST_TEXT) >= least
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(CUT) == []


def test_what_the_server_counted_needs_no_sideways_scrolling_on_a_phone(browser: Chromium, pages: Path) -> None:
    """Each figure stands behind its name, within the window; on a desk it is a table with a head."""
    outside = (
        "[...document.querySelectorAll('#server td')].filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    head = "getComputedStyle(document.querySelector('#server thead')).display"
    name = "getComputedStyle(document.querySelector('#server td[data-name=waiting]:not(.none)'), '::before').content"
    browser.open(pages / "full.html", width=390, height=844)
    assert browser.evaluate(outside) == 0
    assert browser.evaluate(head) == "none"
    assert "waiting" in browser.evaluate(name)
    browser.open(pages / "full.html", width=1280, height=800)
    assert browser.evaluate(head) == "table-header-group"
    assert browser.evaluate(name) == "none"


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_their_ground(browser: Chromium, pages: Path, dark: bool) -> None:
    """Contrast of at least 4.5 to 1 for text (WCAG 2.2, criterion 1.4.3), in light and in dark."""
    browser.open(pages / "full.html", width=1280, height=800, dark=dark)
    for place in ("h1", ".verdict dt", ".verdict .mark", ".note", ".gate small", "svg.chart text", "summary"):
        ink, ground = (
            browser.evaluate(f"getComputedStyle(document.querySelector('{place}')).{what}")
            for what in ("color", "fill")
        )
        if place.startswith("svg"):
            ink = ground
        card = browser.evaluate("getComputedStyle(document.querySelector('.verdict')).backgroundColor")
        assert _contrast(ink, card) >= 4.5, f"{place}: {ink} on {card}"


def _contrast(ink: str, ground: str) -> float:
    bright, dim = sorted((_luminance(ink), _luminance(ground)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2.2)."""
    parts = [float(one) / 255 for one in colour.split("(")[1].rstrip(")").split(",")[:3]]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_dark_is_dark(browser: Chromium, pages: Path) -> None:
    grounds = []
    for dark in (False, True):
        browser.open(pages / "full.html", width=1280, height=800, dark=dark)
        grounds.append(_luminance(browser.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert grounds[0] > 0.9
    assert grounds[1] < 0.02


def test_every_figure_is_reached_with_the_tab_key(browser: Chromium, pages: Path) -> None:
    browser.open(pages / "pass.html", width=1280, height=800)
    wanted = browser.evaluate("document.querySelectorAll('figure').length")
    assert wanted >= 5
    reached = set()
    for _ in range(200):
        browser.press("Tab")
        place = browser.evaluate(
            "document.activeElement.tagName == 'FIGURE' ? "
            "[...document.querySelectorAll('figure')].indexOf(document.activeElement) : -1"
        )
        reached |= {place} - {-1}
        if len(reached) == wanted:
            break
    assert len(reached) == wanted


def test_a_printed_page_has_no_dark_ground_and_fits_a_sheet(browser: Chromium, pages: Path) -> None:
    browser.open(pages / "full.html", width=794, height=1123, media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 794
    assert len(browser.call("Page.printToPDF", printBackground=True)["data"]) > 10_000


def test_on_a_desk_every_median_is_seen_without_scrolling(browser: Chromium, pages: Path) -> None:
    """The column of totals lay behind a scroll bar that nobody sees (A9)."""
    browser.open(pages / "full.html", width=1280, height=800)
    tables = browser.evaluate("document.querySelectorAll('#phases .medians').length")
    scrolls = "[...document.querySelectorAll('#phases .medians')].map(e => e.parentElement)"
    wider = f"{scrolls}.filter(e => e.scrollWidth > e.clientWidth).length"
    assert tables > 0
    assert browser.evaluate(wider) == 0
