"""A time to first token in parts: what each clock says, what is known, and what is left over."""

from __future__ import annotations

import pytest

from phasegate.core.metric import Undefined
from phasegate.stats.counters import ServerCounts
from phasegate.stats.first_token import (
    IMPOSSIBLE,
    FirstToken,
    Overheads,
    median_split,
    split_by_counts,
    split_by_timings,
)
from tests.timelines import failed, timeline

EVEN = ((0.0, 0.0), (2000.0, 0.002))
"""A microsecond a token."""

KNOWN = Overheads(http=0.0015, tokenising=EVEN)


def llama(prompt_ms: float, predicted_ms: float) -> FirstToken:
    """The split of a request of 500 prompt tokens and 5 output tokens 10 ms apart, first token after 100 ms."""
    timings = {"prompt_ms": prompt_ms, "predicted_ms": predicted_ms, "prompt_n": 500}
    split = split_by_timings(timeline(server_timings=timings, prompt_tokens=500), KNOWN)
    assert isinstance(split, FirstToken)
    return split


def test_every_part_of_a_llama_cpp_request_is_found() -> None:
    """100 ms: 1.5 of HTTP, 0.5 of tokenising, 95 of prefill, 2 held back behind the next step; 1 is left over."""
    split = llama(95.0, 42.0)
    assert split.prefill == pytest.approx(0.095)
    assert split.first_decode == pytest.approx(0.002)  # the server's 42 ms of decoding against the client's 40
    assert split.tokenising == pytest.approx(0.0005)
    assert split.outside == pytest.approx(0.005)
    assert split.unexplained == pytest.approx(0.001)
    assert split.unknown == ("queue",)


def test_an_answer_of_one_token_was_not_held_back() -> None:
    """There was no next step."""
    timings = {"prompt_ms": 95.0, "predicted_ms": 0.001}
    split = split_by_timings(timeline(tokens=1, server_timings=timings))
    assert isinstance(split, FirstToken)
    assert split.first_decode == 0.0


def test_tokenising_is_read_between_the_lengths_that_were_measured() -> None:
    """It does not grow evenly: half way between two lengths half way between their times, and beyond in proportion."""
    known = Overheads(tokenising=((1, 0.0), (101, 0.001), (301, 0.002)))
    assert known.tokenising_of(51) == pytest.approx(0.0005)
    assert known.tokenising_of(201) == pytest.approx(0.0015)
    assert known.tokenising_of(602) == pytest.approx(0.004)
    assert known.tokenising_of(None) is None
    assert Overheads().tokenising_of(100) is None


def test_the_rest_is_negative_where_the_parts_are_too_large() -> None:
    """Nothing is fitted or cut off: a server that claims more than the client waited is seen."""
    split = llama(99.0, 42.0)
    assert split.unexplained == pytest.approx(-0.003)


def test_vllms_request_metrics_have_a_queue_of_their_own() -> None:
    """Its time to first token begins at the scheduling."""
    timings = {"queue_time_ms": 12.0, "time_to_first_token_ms": 80.0}
    split = split_by_timings(timeline(server_timings=timings), Overheads(http=0.006))
    assert isinstance(split, FirstToken)
    assert (split.queue, split.prefill, split.server) == pytest.approx((0.012, 0.080, 0.092))
    assert split.unexplained == pytest.approx(0.002)
    assert split.inside_rest == pytest.approx(0.0)


@pytest.mark.parametrize("timings", [None, {}, {"prompt_ms": "95"}, {"prompt_ms": -1.0}, {"prompt_ms": True}])
def test_without_usable_timings_there_is_no_split(timings: dict[str, object] | None) -> None:
    """None, none of ours, a text, a negative time, a truth value."""
    assert isinstance(split_by_timings(timeline(server_timings=timings)), Undefined)


def test_histograms_split_the_mean() -> None:
    """Four requests of 100 ms; the server says 94 of TTFT, of which 4 queueing and 85 prefill."""
    counts = ServerCounts({"ttft": 0.376, "queue": 0.016, "prefill": 0.340}, {"ttft": 4, "queue": 4, "prefill": 4})
    split = split_by_counts([timeline(prompt_tokens=1000)] * 4, counts, Overheads(http=0.004, tokenising=EVEN))
    assert isinstance(split, FirstToken)
    assert split.outside == pytest.approx(0.006)
    assert split.inside_rest == pytest.approx(0.005)
    assert split.unexplained == pytest.approx(0.001)


def test_a_first_token_that_came_late_shows_in_the_mean_time_of_decoding() -> None:
    """The server decodes for 43 ms where the client sees 40: the first token was held back by 3."""
    counts = ServerCounts({"ttft": 0.376, "decode": 0.172}, {"ttft": 4, "decode": 4})
    split = split_by_counts([timeline()] * 4, counts, Overheads(http=0.002))
    assert isinstance(split, FirstToken)
    assert split.first_decode == pytest.approx(0.003)
    assert split.unexplained == pytest.approx(0.001)
    other = split_by_counts([timeline()] * 4, ServerCounts({"ttft": 0.376, "decode": 0.172}, {"ttft": 4, "decode": 3}))
    assert isinstance(other, FirstToken)
    assert other.first_decode is None


def test_a_server_that_others_use_too_is_not_split() -> None:
    """It counted seven first tokens while four were measured: its means are not of these requests."""
    counts = ServerCounts({"ttft": 0.7}, {"ttft": 7})
    split = split_by_counts([timeline()] * 4, counts)
    assert isinstance(split, Undefined)
    assert "the server counted 7 requests, the client 4" in split.reason


def test_counters_of_seconds_are_divided_by_the_clients_count() -> None:
    """llama.cpp's page; requests that failed had no first token and do not count."""
    split = split_by_counts([timeline()] * 4 + [failed()], ServerCounts({"prefill": 0.36}))
    assert isinstance(split, FirstToken)
    assert split.server == pytest.approx(0.09)


def test_tokenising_that_the_server_counts_itself_is_not_taken_away_twice() -> None:
    """SGLang's TTFT begins before it."""
    counts = ServerCounts({"ttft": 0.36}, {"ttft": 4})
    split = split_by_counts([timeline()] * 4, counts, Overheads(http=0.01, tokenising=EVEN, tokenised_inside=True))
    assert isinstance(split, FirstToken)
    assert split.tokenising == 0.0
    assert split.unexplained == pytest.approx(0.0)


def test_nothing_told_is_said() -> None:
    """An empty page, and requests without a token."""
    assert isinstance(split_by_counts([timeline()], ServerCounts()), Undefined)
    assert isinstance(split_by_counts([failed()], ServerCounts({"ttft": 1.0}, {"ttft": 1})), Undefined)


@pytest.mark.parametrize(("milliseconds", "possible"), [(100.0, True), (101.9, True), (102.1, False), (400.0, False)])
def test_a_server_cannot_take_longer_than_its_client_waited(milliseconds: float, possible: bool) -> None:
    """Of 100 ms: a millisecond and a hundredth are the clocks' error, more is of other requests or another unit."""
    queued = {"queue_time_ms": 50.0, "time_to_first_token_ms": milliseconds - 50.0}
    line = timeline(prompt_tokens=500)
    for split in (
        split_by_timings(timeline(server_timings={"prompt_ms": milliseconds})),
        split_by_timings(timeline(server_timings=queued)),
        split_by_counts([line] * 4, ServerCounts({"ttft": milliseconds * 4e-3}, {"ttft": 4})),
        split_by_counts([line] * 4, ServerCounts({"prefill": milliseconds * 4e-3})),
    ):
        assert isinstance(split, FirstToken) is possible
        assert possible or (isinstance(split, Undefined) and split.reason.startswith(IMPOSSIBLE))


def test_both_times_are_told_where_the_servers_is_impossible() -> None:
    """One line, with what follows."""
    split = split_by_timings(timeline(0.0797, server_timings={"prompt_ms": 308.0}))
    assert isinstance(split, Undefined)
    assert split.reason == f"{IMPOSSIBLE} (308 ms of a TTFT of 79.7 ms); it is not used"


def test_medians_of_parts_are_taken_part_by_part() -> None:
    """A part that one request does not know is unknown in the median."""
    three = [llama(94.0, 42.0), llama(95.0, 42.0), llama(96.0, 42.0)]
    middle = median_split(three)
    assert middle is not None
    assert middle.prefill == pytest.approx(0.095)
    assert middle.queue is None
    assert middle.facts()["unexplained"] == pytest.approx(0.001)
    assert median_split([]) is None
