"""Two readings of a server's counters and what lies between them."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.stats.counters import Kind, Reading, ServerCounts, counted_between, counted_together


def histogram(total: float, count: float) -> Reading:
    return Reading(Kind.HISTOGRAM, total, count)


def counter(value: float) -> Reading:
    return Reading(Kind.COUNTER, value)


def test_means_are_of_the_requests_in_between_only() -> None:
    """Four requests of 0.5 s after many slow ones."""
    counts = counted_between({"ttft": histogram(900.0, 100)}, {"ttft": histogram(902.0, 104)})
    assert counts.mean("ttft") == pytest.approx(0.5)
    assert counts.mean("queue") is None


def test_a_counter_of_seconds_needs_the_clients_count() -> None:
    """llama.cpp adds up seconds and does not say of how many requests."""
    counts = counted_between({"prefill": counter(1.0)}, {"prefill": counter(3.0)})
    assert counts.mean("prefill") is None
    assert counts.mean("prefill", requests=4) == pytest.approx(0.5)


def test_a_counter_that_fell_is_named_and_not_used() -> None:
    """The server was restarted in between: the difference would be of two different runs."""
    before = {"requests": counter(50), "ttft": histogram(5.0, 50), "cache_hits": counter(10)}
    after = {"requests": counter(3), "ttft": histogram(9.0, 3), "cache_hits": counter(12)}
    counts = counted_between(before, after)
    assert counts.reset == ("requests", "ttft")
    assert counts.grown == {"cache_hits": 2}
    assert counts.mean("ttft") is None


def test_what_appears_only_afterwards_began_at_nothing_and_what_is_gone_has_no_difference() -> None:
    """Servers create histograms with the first request."""
    counts = counted_between({"requests": counter(1)}, {"ttft": histogram(0.6, 2)})
    assert counts.mean("ttft") == pytest.approx(0.3)
    assert "requests" not in counts.grown


def test_a_gauge_is_what_it_was_afterwards_and_nan_is_nothing() -> None:
    """Gauges have no difference."""
    before = {"running": Reading(Kind.GAUGE, 7)}
    after = {"running": Reading(Kind.GAUGE, 2), "kv_usage": Reading(Kind.GAUGE, math.nan)}
    assert counted_between(before, after).gauges == {"running": 2}


def test_the_hit_rate_comes_from_queries_or_else_from_prompt_tokens() -> None:
    """vLLM counts queries in tokens; SGLang and llama.cpp count cached tokens."""
    assert ServerCounts({"cache_hits": 30, "cache_queries": 120}).cache_hit_rate == 0.25
    assert ServerCounts({"cached_tokens": 30, "prompt_tokens": 60}).cache_hit_rate == 0.5
    assert ServerCounts({"cached_tokens": 30, "computed_tokens": 60}).cache_hit_rate == pytest.approx(1 / 3)
    assert ServerCounts({"cache_hits": 0, "cache_queries": 0}).cache_hit_rate is None
    assert ServerCounts({"accepted_tokens": 3, "drafted_tokens": 4}).acceptance == 0.75


def test_streams_in_a_step_are_counted_or_else_tokens_less_accepted_drafts() -> None:
    """A step gives each of its streams one token of its own; accepted drafts come on top of it."""
    assert ServerCounts({"steps": 40, "step_streams": 150, "output_tokens": 400}).streams_per_step == 3.75
    assert ServerCounts({"steps": 40, "output_tokens": 150}).streams_per_step == 3.75
    assert ServerCounts({"steps": 40, "output_tokens": 150, "accepted_tokens": 110}).streams_per_step == 1.0


@pytest.mark.parametrize(
    "counts",
    [
        ServerCounts({"output_tokens": 150}),
        ServerCounts({"steps": 0, "output_tokens": 0}),
        ServerCounts({"steps": 40}),
        ServerCounts({"output_tokens": 150}, reset=("steps",)),
        ServerCounts({"steps": 40}, reset=("output_tokens",)),
        ServerCounts({"steps": 40, "output_tokens": 150}, reset=("step_streams",)),
        ServerCounts({"steps": 40, "output_tokens": 150}, reset=("accepted_tokens",)),
    ],
)
def test_streams_in_a_step_are_not_made_up(counts: ServerCounts) -> None:
    """Not told, no step, or a count that fell in between: restarted servers have no figure."""
    assert counts.streams_per_step is None


def test_who_waits_and_who_runs_at_a_moment_follows_from_the_sums_of_their_times() -> None:
    """Eight requests in 10 s that waited 5 s and ran 2.5 s each: four wait and two run at any moment."""
    waiting = {"queue": 40.0}
    assert ServerCounts(waiting).mean_waiting(10) == 4.0
    for computing in ({"inference": 20.0, "total": 99.0}, {"prefill": 5.0, "decode": 15.0}, {"total": 60.0}):
        assert ServerCounts({**waiting, **computing}).mean_running(10) == 2.0


@pytest.mark.parametrize(
    ("counts", "seconds"),
    [
        (ServerCounts({"requests": 8}), 10.0),
        (ServerCounts({"prefill": 5.0, "total": 60.0}), 10.0),
        (ServerCounts({"total": 60.0}, reset=("queue",)), 10.0),
        (ServerCounts({"queue": 40.0, "inference": 20.0}), 0.0),
    ],
)
def test_who_waits_and_who_runs_is_not_made_up(counts: ServerCounts, seconds: float) -> None:
    """Not told, told in part, a counter that fell in between, or a span of no length."""
    assert counts.mean_waiting(seconds) is None
    assert counts.mean_running(seconds) is None


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 5), st.floats(0.1, 5)), min_size=1, max_size=12))
def test_the_mean_number_is_that_of_looking_at_every_moment(requests: list[tuple[float, float, float]]) -> None:
    """Requests as (arrival, waiting, computing): adding up who is there, moment by moment, gives the same mean."""
    marks = sorted({0.0, *(edge for at, wait, work in requests for edge in (at, at + wait, at + wait + work))})
    span = marks[-1]
    spans = list(itertools.pairwise(marks))
    waiting = sum((b - a) * sum(at <= a and b <= at + wait for at, wait, _ in requests) for a, b in spans) / span
    running = (
        sum((b - a) * sum(at + wait <= a and b <= at + wait + work for at, wait, work in requests) for a, b in spans)
        / span
    )
    counts = ServerCounts({"queue": sum(one[1] for one in requests), "inference": sum(one[2] for one in requests)})
    assert counts.mean_waiting(span) == pytest.approx(waiting, rel=1e-6, abs=1e-9)
    assert counts.mean_running(span) == pytest.approx(running, rel=1e-6, abs=1e-9)


def test_spans_add_up_and_a_reset_in_one_spoils_the_sum() -> None:
    """Two rounds of a level; the second one's requests were reset."""
    first = ServerCounts({"ttft": 1.0, "requests": 2}, {"ttft": 2}, {"running": 4})
    second = ServerCounts({"ttft": 3.0}, {"ttft": 2}, {"running": 0}, ("requests",))
    both = counted_together([first, None, second])
    assert both is not None
    assert counted_together([None]) is None
    assert both.mean("ttft") == pytest.approx(1.0)
    assert both.reset == ("requests",)
    assert "requests" not in both.grown
    assert both.gauges == {"running": 0}


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(sorted))
def test_two_halves_are_the_whole(values: list[float]) -> None:
    """Reading once more in the middle changes nothing."""
    first, middle, last = (({"prompt_tokens": counter(value)}) for value in values)
    whole = counted_between(first, last).grown["prompt_tokens"]
    halves = counted_together([counted_between(first, middle), counted_between(middle, last)])
    assert halves is not None
    assert halves.grown["prompt_tokens"] == pytest.approx(whole)
