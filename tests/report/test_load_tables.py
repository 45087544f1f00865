"""Load in the summary: one row a level that fits the screen, no failure hidden, and lines that say what was found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from phasegate.gate.slo import parse_objective
from phasegate.gate.slo_search import Limit, limits
from phasegate.report.load_tables import batching_lines, limit_lines, load_lines, stall_lines
from phasegate.stats.level_run import ChunkedPrefill, Collision, LevelRun
from tests.load_runs import level_run
from tests.timelines import timeline

SLO = parse_objective("ttft:p95:500ms", source="test")


@dataclass
class Measured:
    """What a lab under load holds, without the lab."""

    levels: dict[int, LevelRun] = field(default_factory=dict)
    searched: dict[int, LevelRun] = field(default_factory=dict)
    rates: dict[float, LevelRun] = field(default_factory=dict)
    collisions: list[Collision] = field(default_factory=list)
    chunked_prefill: ChunkedPrefill | None = None
    found: list[Limit] = field(default_factory=list)
    uncalibrated: str | None = None


def lines_of(measured: Measured, width: int = 80) -> list[str]:
    return load_lines(measured, [SLO], width, colour=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_every_line_fits_the_screen_and_no_cell_is_cut(width: int) -> None:
    levels = {1: level_run(1, [0.1] * 60), 16: level_run(16, [0.1, 12.345] * 40, failures=3, notes=("late " * 40,))}
    lines = lines_of(Measured(levels), width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    assert any("12.3 s" in line for line in lines)


def test_failures_are_infinite_in_percentiles_misses_in_attainment_and_named() -> None:
    lines = lines_of(Measured({4: level_run(4, [0.1] * 15, failures=5)}))
    row = next(line for line in lines if line.split()[:1] == ["4"])
    assert "inf" in row
    assert "75%" in row
    assert "4 at a time: failed: 5 x http_500" in lines


def test_a_percentile_that_is_only_the_largest_value_is_marked() -> None:
    few = lines_of(Measured({1: level_run(1, [0.1] * 10)}))
    assert any("100.0 ms*" in line for line in few)
    enough = lines_of(Measured({1: level_run(1, [0.1] * 20)}))
    assert not any("*" in line for line in enough)


def test_a_load_that_was_not_reached_is_called_invalid() -> None:
    lines = lines_of(Measured({4: level_run(4, [0.1] * 20, missed="3 of 4 in flight")}))
    assert "4 at a time: INVALID: 3 of 4 in flight" in lines


def test_batching_is_told_with_its_price() -> None:
    assert batching_lines([level_run(1, [0.1] * 2), level_run(4, [0.1] * 8, tpot=0.02)]) == [
        "batching 1 -> 4: throughput x 3.11, TPOT x 2.00"
    ]


@pytest.mark.parametrize(("stall", "said"), [(0.05, "read in pieces"), (0.5, "not read in pieces")])
def test_a_stall_is_told_as_a_share_of_the_prefill(stall: float, said: str) -> None:
    """The stream has tokens every 10 ms but for one gap, inside which the long prompt is read."""
    before = timeline(ttft=0.1, tpot=0.01, tokens=10)
    late = [event.at + stall for event in before.tokens[5:]]
    tokens = before.tokens[:5] + tuple(
        type(event)(at, event.channel, event.text) for event, at in zip(before.tokens[5:], late, strict=True)
    )
    stream = timeline(tokens=10, ttft=0.1, tpot=0.01)
    stream = type(stream)(**{**{name: getattr(stream, name) for name in stream.__slots__}, "tokens": tokens})
    intruder = timeline(sent=100.141, ttft=0.182 + stall, tokens=2, prompt_tokens=512)
    collision = Collision(intruder, (stream,), alone=0.5)
    (line,) = stall_lines([collision])
    assert said in line
    assert line.startswith("a prompt of 512 tokens stalls 1 running streams for")
    both = lines_of(
        Measured(collisions=[collision], chunked_prefill=ChunkedPrefill("n_batch=64", (collision,))), width=400
    )
    assert both == [line, f"with n_batch=64: {line}"]


def test_a_limit_is_told_with_its_cause() -> None:
    runs = [level_run(1, [0.1] * 60), level_run(8, [0.9] * 60)]
    point, text, cause = limit_lines(limits([SLO], runs, at_most=64))
    assert point == ("users at a time, break point: between 1 and 8, by ttft:p95:500ms (prefill), cause: queueing")
    assert text == "  ttft:p95:500ms: kept up to 1 at a time, broken from 8 at a time"
    assert cause.startswith("    cause: queueing: TTFT is 900 ms, 100.0 ms from one user")


def test_users_and_rates_have_a_break_point_each() -> None:
    users = limits([SLO], [level_run(1, [0.1] * 60)], at_most=1)
    rates = limits([SLO], [level_run(3.0, [0.9] * 60, by_rate=True)], at_most=4.0)
    lines = limit_lines([*users, *rates])
    assert lines[0] == "users at a time, break point: none found up to 1"
    assert lines[2].startswith("requests/s, break point: somewhere up to 3, by ttft:p95:500ms (prefill), cause:")


def test_nothing_measured_says_nothing() -> None:
    assert lines_of(Measured()) == []


@pytest.mark.parametrize("width", [80, 120, 140])
def test_colours_do_not_tear_the_tables(width: int) -> None:
    """Their codes were counted as columns, and the header came in three lines (A7)."""
    plain, coloured = (
        load_lines(Measured({4: level_run(4, [0.1] * 4), 16: level_run(16, [0.2] * 16)}), [SLO], width, colour=colour)  # type: ignore[arg-type]
        for colour in (False, True)
    )
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain
    assert coloured != plain
