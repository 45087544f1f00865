"""Charts: well-formed, named, with units on every axis, and every mark where its number says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.report.charts.cache import cache_chart
from phasegate.report.charts.change import change_bar, ruler
from phasegate.report.charts.gaps import gaps_chart
from phasegate.report.charts.lengths import length_chart, per_token_chart
from phasegate.report.charts.load import load_charts
from phasegate.report.charts.plane import BOTTOM, LEFT, RIGHT, TOP
from phasegate.report.charts.scale import Scale, log_ticks, nice_ticks
from phasegate.report.charts.standalone import standalone
from phasegate.report.charts.svg import WIDTH, Chart
from phasegate.report.charts.timeline import timeline_chart
from phasegate.report.charts.trend import trend_chart
from phasegate.report.document.model import Row
from tests.report.documents import document, full_document

SVG = "{http://www.w3.org/2000/svg}"


def charts() -> Iterator[Chart]:
    """Every chart of a full document."""
    whole = full_document()
    for table in whole.workloads:
        found = (cache_chart(table), length_chart(table), per_token_chart(table), gaps_chart(table))
        yield from (one for one in found if one is not None)
    assert whole.load is not None
    yield from load_charts(whole.load)
    assert whole.request is not None
    yield timeline_chart(whole.request)
    yield from (trend_chart(one, 0.1) for one in whole.trends)


CHARTS = list(charts())


@pytest.mark.parametrize("chart", CHARTS, ids=[f"{number}-{one.title}" for number, one in enumerate(CHARTS)])
def test_a_chart_is_well_formed_named_and_has_its_numbers_as_a_table(chart: Chart) -> None:
    root = ElementTree.fromstring(chart.svg)
    assert root.attrib["role"] == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text
    assert description.text
    assert root.attrib["aria-labelledby"] == f"{title.attrib['id']} {description.attrib['id']}"
    assert chart.rows
    assert all(len(row) == len(chart.columns) for row in chart.rows)
    assert "nan" not in chart.svg
    assert "inf," not in chart.svg


@pytest.mark.parametrize("chart", CHARTS, ids=[f"{number}-{one.title}" for number, one in enumerate(CHARTS)])
def test_every_axis_says_its_unit(chart: Chart) -> None:
    names = [node.text or "" for node in ElementTree.fromstring(chart.svg).iter(f"{SVG}text")
             if node.attrib.get("class") == "axis-name"]  # fmt: skip
    assert names
    plain = ("gaps", "session, oldest first", "requests at a time, logarithmic")
    for name in names:
        assert re.search(r"\((ms|s|min|tokens|ms/token|s/token|requests/s)", name) or name in plain, name


@pytest.mark.parametrize("chart", CHARTS, ids=[f"{number}-{one.title}" for number, one in enumerate(CHARTS)])
def test_no_mark_leaves_its_picture(chart: Chart) -> None:
    root = ElementTree.fromstring(chart.svg)
    height = float(root.attrib["viewBox"].split()[3])
    for node in root.iter():
        for name in ("x", "cx", "x1", "x2"):
            assert 0 <= float(node.attrib.get(name, 0)) <= WIDTH
        for name in ("y", "cy", "y1", "y2"):
            assert 0 <= float(node.attrib.get(name, 0)) <= height


def test_the_median_stands_where_its_value_is() -> None:
    """Read back from the picture: pixels of the axis' ticks give the scale, the diamond gives the value."""
    table = document().workloads[0]
    chart = length_chart(table)
    assert chart is not None
    root = ElementTree.fromstring(chart.svg)
    ticks = {
        float(node.text or ""): float(node.attrib["y"]) - 4
        for node in root.iter(f"{SVG}text")
        if node.attrib.get("text-anchor") == "end" and node.attrib.get("class") == "tick"
    }
    (low, low_at), (high, high_at) = min(ticks.items()), max(ticks.items())
    diamonds = [node for node in root.iter(f"{SVG}polygon") if node.attrib.get("class") == "median"]
    top, _, bottom, _ = (tuple(map(float, pair.split(","))) for pair in diamonds[1].attrib["points"].split())
    middle = (top[1] + bottom[1]) / 2
    read = low + (middle - low_at) / (high_at - low_at) * (high - low)
    estimate = table.cells[1].ttft
    assert estimate is not None
    assert estimate.value is not None
    assert read == pytest.approx(estimate.value * 1e3, rel=0.01)


def test_the_timeline_divides_the_request_at_its_first_token() -> None:
    request = document().request
    assert request is not None
    chart = timeline_chart(request)
    bars = [node for node in ElementTree.fromstring(chart.svg).iter(f"{SVG}rect") if "bar" in node.attrib["class"]]
    prefill, decode = (float(node.attrib["width"]) for node in bars)
    assert prefill / (prefill + decode) == pytest.approx(request.ttft / request.total, abs=0.001)
    ticks = [node for node in ElementTree.fromstring(chart.svg).iter(f"{SVG}line") if node.attrib["class"] == "token"]
    assert len(ticks) == len(request.token_at)
    assert f"x {(request.output_tokens or 0) - 1} = " in chart.caption


def test_the_objective_and_the_break_are_drawn() -> None:
    load = full_document().load
    assert load is not None
    chart = next(one for one in load_charts(load) if one.title.startswith("TTFT"))
    assert "objective p95 &lt;= 500 ms" in chart.svg
    assert "breaks at 16" in chart.svg
    assert "broken from 16" in chart.caption


def test_a_percentile_of_failed_requests_is_a_gap_and_not_a_point() -> None:
    load = full_document().load
    assert load is not None
    chart = next(one for one in load_charts(load) if one.title.startswith("TTFT"))
    assert chart.rows[-1][chart.columns.index("p99")] == "-"


def test_a_cached_prefix_is_told_beside_its_control() -> None:
    table = next(one for one in document().workloads if one.prefix != "unique")
    chart = cache_chart(table)
    assert chart is not None
    assert chart.caption == "The second call saves 80 % of TTFT; the control differs by +1.7 %."
    assert len(chart.rows) == 3


def row(**changes: object) -> Row:
    """A comparison 20 % slower."""
    values: dict[str, object] = {
        "workload": "w[in=1,out=2]", "metric": "ttft", "phase": "prefill", "unit": "s", "better": "lower",
        "gated": True, "verdict": "REGRESSION", "reason": "r", "ratio": 1.2, "ratio_low": 1.15, "ratio_high": 1.25,
        "tolerance": 0.1, "fails_from": 0.05, "baseline_value": 0.1, "candidate_value": 0.12,
        "baseline_levels": (0.1, 0.101), "candidate_levels": (0.12,),
    }  # fmt: skip
    return Row(**{**values, **changes})  # type: ignore[arg-type]


def test_the_limit_stands_left_of_a_regression_and_right_of_zero() -> None:
    scale = ruler([row()]).scale
    picture = ElementTree.fromstring(change_bar(row(), ruler([row()])))
    edge = next(node for node in picture.iter(f"{SVG}line") if node.attrib["class"] == "limit")
    bar = next(node for node in picture.iter(f"{SVG}rect") if node.attrib["class"] == "interval-bar")
    assert scale.at(0.0) < float(edge.attrib["x1"]) < float(bar.attrib["x"])
    assert float(edge.attrib["x1"]) == pytest.approx(scale.at(0.1), abs=0.01)
    fails = next(node for node in picture.iter(f"{SVG}line") if node.attrib["class"] == "half-limit")
    assert float(fails.attrib["x1"]) == pytest.approx(scale.at(0.05), abs=0.01)
    assert "half-limit" not in change_bar(row(fails_from=None), ruler([row()]))


def test_where_more_is_better_the_accepted_side_is_the_other() -> None:
    faster = row(better="higher", ratio=1.2)
    picture = ElementTree.fromstring(change_bar(faster, ruler([faster])))
    accepted = next(node for node in picture.iter(f"{SVG}rect") if node.attrib["class"] == "accepted")
    assert float(accepted.attrib["x"]) == pytest.approx(ruler([faster]).scale.at(1 / 1.1 - 1), abs=0.01)


def test_what_is_far_beyond_the_axis_is_an_arrow_at_its_end() -> None:
    far = row(ratio=9.0, ratio_low=8.0, ratio_high=10.0)
    picture = ElementTree.fromstring(change_bar(far, ruler([far])))
    arrow = next(node for node in picture.iter(f"{SVG}polygon") if node.attrib["class"] == "estimate")
    assert arrow.attrib["points"].startswith(f"{ruler([far]).scale.end:.1f},")


def test_a_row_that_was_not_compared_says_so() -> None:
    nothing = row(ratio=None, ratio_low=None, ratio_high=None, tolerance=None)
    assert "not compared" in change_bar(nothing, ruler([nothing]))


@given(st.floats(-2, 30), st.floats(0.001, 20), st.sampled_from([0.05, 0.3, 1.5, 4.0]))
def test_any_change_stays_inside_its_row(change: float, half: float, tolerance: float) -> None:
    ratio = max(0.01, 1 + change)
    one = row(ratio=ratio, ratio_low=max(0.001, ratio - half), ratio_high=ratio + half, tolerance=tolerance,
              fails_from=tolerance / 2)  # fmt: skip
    root = ElementTree.fromstring(change_bar(one, ruler([one])))
    for node in root.iter(f"{SVG}rect"):
        assert -0.01 <= float(node.attrib["x"]) <= 300.01
        assert float(node.attrib["x"]) + float(node.attrib["width"]) <= 302


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e4))
def test_ticks_are_few_round_and_inside(low: float, ratio: float) -> None:
    high = low * ratio
    for ticks in (nice_ticks(low, high), log_ticks(low, high)):
        assert len(ticks) <= 12
        assert all(low * 0.998 <= tick <= high * 1.002 for tick in ticks)
        assert ticks == sorted(set(ticks))


def test_a_logarithmic_scale_gives_equal_room_to_equal_ratios() -> None:
    scale = Scale(1, 100, 0, 200, log=True)
    assert scale.at(10) == pytest.approx(100)
    assert scale.at(1000) == 200


def test_a_picture_of_its_own_is_a_file_with_its_colours_inside() -> None:
    request = document().request
    assert request is not None
    text = standalone(timeline_chart(request))
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_words_of_a_workload_cannot_break_out_of_a_picture() -> None:
    evil = row(workload="<script>alert(1)</script>&\"'")
    root = ElementTree.fromstring(change_bar(evil, ruler([evil])))
    assert not list(root.iter("script"))


def test_the_frame_leaves_room_for_names() -> None:
    """The constants that every chart shares fit each other."""
    assert LEFT + RIGHT < WIDTH / 2
    assert TOP + BOTTOM < 100
