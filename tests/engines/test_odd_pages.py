"""Metrics pages that are none: one clean line says so, and the numbers stay silent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from phasegate.engines.metrics.names import ENGINES
from phasegate.engines.metrics.page import MetricsPages, Page
from phasegate.engines.metrics.readings import read_page
from phasegate.measure.server_metrics import ServerMetrics
from phasegate.stats.counters import Kind, Reading
from tests.engines.front_doors import Door, house

pytest.importorskip("prometheus_client")

KEY = "verysecret123"

NUMBERLESS = """\
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_sum NaN
vllm:time_to_first_token_seconds_count NaN
vllm:request_success_total NaN
"""


def page_of(text: str) -> Page:
    """What is read of that text as vLLM's page."""
    with house({"/metrics": Door(text)}) as server:
        return MetricsPages(server.base_url, "vllm", KEY).read()


def test_a_binary_page_is_one_short_clean_line() -> None:
    """The reader quotes what it cannot read, kilobytes of it."""
    note = str(page_of("vllm:x \x00\x1b[31m \ufffd\n" + "\x01\ufffd" * 4000 + "\n").note)
    assert note.endswith("/metrics is not a page in Prometheus' text format (it holds bytes that are no text)")


def test_a_page_of_text_is_quoted_shortly_and_without_the_key() -> None:
    """As much as tells what answered instead."""
    note = str(page_of(f"vllm:x {KEY}" + "y" * 4000 + "\n").note)
    assert note.isprintable()
    assert len(note) < 250
    assert KEY not in note
    assert "is not a page in Prometheus' text format (could not convert" in note


def test_numbers_that_are_none_are_no_readings() -> None:
    """One note for all of them; the door stays open, because numbers may come with the first request."""
    assert read_page(NUMBERLESS, ENGINES["vllm"]) == {}
    page = page_of(NUMBERLESS)
    assert (page.readings, "has no number for any" in str(page.note)) == ({}, True)


class Told(MetricsPages):
    """A door that tells these readings, one after the other."""

    def __init__(self, pages: Sequence[dict[str, Reading]]) -> None:
        super().__init__("http://127.0.0.1:9/v1", "vllm")
        self._told: Iterator[dict[str, Reading]] = iter(pages)

    def read(self) -> Page:
        return Page(next(self._told))


def page(requests: float, running: float = 0.0) -> dict[str, Reading]:
    """A counter and a gauge."""
    return {"requests": Reading(Kind.COUNTER, requests), "running": Reading(Kind.GAUGE, running)}


@pytest.mark.parametrize(("after", "noted"), [(page(3), True), (page(3, running=2), True), (page(4), False)])
def test_counters_that_never_move_are_noted(after: dict[str, Reading], noted: bool) -> None:
    """Measured requests move the counters of their own engine; a gauge may stand anywhere."""
    view = ServerMetrics(Told([page(3), after]))
    view.since(view.read())
    assert (view.remark is not None) == noted
    if noted:
        assert "none of the server's own counters moved in 1 measurement:" in str(view.remark)
