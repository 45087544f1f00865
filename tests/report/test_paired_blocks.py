"""A paired run is told as one: blocks of two servers in turns, a reference and no baseline, one figure (A6)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from phasegate.core.session import Session
from phasegate.gate.blocks import ORDER_KEY
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.report.as_markdown import render_markdown
from phasegate.report.charts.blocks import blocks_chart
from phasegate.report.charts.trend import trend_chart
from phasegate.report.document.build import from_sessions
from phasegate.report.document.model import Document
from phasegate.report.html.page import render_html
from tests.sessions import sessions

ORDERS = ("ABBA", "BAAB", "BAAB", "ABBA", "ABBA", "BAAB")

CELL = "chat[in=64,out=8]"


def side(tpot: float, ttft: float = 0.1) -> list[Session]:
    """Six blocks of a server, a little apart."""
    spread = (0.0, 0.003, -0.002, 0.001, 0.002, -0.001)
    levels = {
        (CELL, "ttft"): [ttft * (1 + one) for one in spread],
        (CELL, "tpot"): [tpot * (1 + one) for one in spread],
        (CELL, "e2el"): [(ttft + 7 * tpot) * (1 + one) for one in spread],
    }
    return [
        replace(one, session_id=f"block-{number:03d}", client={**one.client, ORDER_KEY: order})
        for number, (one, order) in enumerate(zip(sessions(levels), ORDERS, strict=True), 1)
    ]


def paired(tpot: float) -> Document:
    """The report of a candidate with that TPOT beside a reference with 10 ms."""
    reference, candidate, policy = side(0.010), side(tpot), Policy()
    result = judge(reference, candidate, policy, paired=True)
    return from_sessions(
        candidate, policy, created="2026-01-01T00:00:00Z", baseline=reference, result=result, paired=True
    )


def test_blocks_hold_both_servers_in_the_order_in_which_they_were_visited() -> None:
    trend = next(one for one in paired(0.011).trends if one.metric == "tpot")
    assert trend.orders == ORDERS
    chart = blocks_chart(trend, 0.1)
    assert [row[:2] for row in chart.rows] == [(f"block-{n:03d}", order) for n, order in enumerate(ORDERS, 1)]
    assert all(row[4] == "+10.0 %" for row in chart.rows)
    assert "block, in the order of measuring" in chart.svg
    assert "in the orders ABBA and BAAB (A the reference, B the candidate)" in chart.caption
    assert "earlier" not in chart.caption


@pytest.mark.parametrize("tpot", [0.011, 0.0115])
def test_picture_table_and_headline_say_the_same_change(tpot: float) -> None:
    """A6: the caption said "now +10.3 %" where the table said +10.9 %."""
    document = paired(tpot)
    assert document.gate is not None
    row = next(one for one in document.gate.rows if one.metric == "tpot")
    assert row.ratio is not None
    said = f"+{100 * (row.ratio - 1):.1f} %"
    page = render_html(document)
    assert f"candidate {said} over all blocks" in page
    assert said in document.headline.title


@pytest.mark.parametrize("tpot", [0.011, 0.010, 0.0085])
def test_a_paired_run_speaks_of_its_reference_and_of_no_baseline(tpot: float) -> None:
    document = paired(tpot)
    page = re.sub(r"<(style|svg|script).*?</\1>", "", render_html(document), flags=re.DOTALL)
    for text in (page, render_markdown(document)):
        assert "baseline" not in text.lower(), re.findall(r".{60}baseline.{60}", text)
    assert "reference → candidate" in page


def test_stored_sessions_keep_their_words_and_their_picture_says_the_gates_change() -> None:
    before, now, policy = side(0.010), side(0.011), Policy()
    before = [replace(one, session_id=f"old-{n}") for n, one in enumerate(before)]
    result = judge(before, now, policy)
    document = from_sessions(now, policy, created="2026-01-01T00:00:00Z", baseline=before, result=result)
    trend = next(one for one in document.trends if one.metric == "tpot")
    assert trend.orders == ()
    chart = trend_chart(trend, change=0.123)
    assert "session, oldest first" in chart.svg
    assert "now +12.3 % against the earlier ones" in chart.caption
    assert "baseline → now" in render_html(document)
