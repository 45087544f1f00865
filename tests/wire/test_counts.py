"""Where token counts come from, and what is not one."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.core.timeline import Expected
from phasegate.wire.estimates import per_token_latencies, time_per_output_token_estimate
from phasegate.wire.numbers import LARGEST_COUNT, count
from tests.wire.streams import DONE, STOP, chat, event, line_of, said, usage


@pytest.mark.parametrize("value", [0, 1, 4096, LARGEST_COUNT])
def test_a_whole_number_is_a_count(value: int) -> None:
    """From zero to the largest believable one; written as a decimal, too."""
    assert count(value) == value
    assert count(float(value)) == value


@pytest.mark.parametrize(
    "value",
    [None, True, False, -1, -0.5, 1.5, "3", "", [], [3], {}, LARGEST_COUNT + 1, 10**400, float("nan"), float("inf")],
)
def test_anything_else_is_no_count(value: object) -> None:
    """None, never a guess."""
    assert count(value) is None


@pytest.mark.parametrize("value", [None, True, -3, 1.5, "3", [3], {"n": 3}, 10**30, float("nan"), float("inf")])
def test_an_absurd_usage_leaves_the_count_unproven(value: object) -> None:
    """The answer is still an answer, its count is missing and says so."""
    line = line_of(said("a"), said("b"), STOP, usage(value, prompt=value, total_tokens=value), DONE)
    assert (line.status, line.output_tokens, line.token_source, line.prompt_tokens) == ("ok", None, None, None)
    assert line.output_tokens_estimate == 2
    assert "usage_missing" in line.flags


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 7}}, 7),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {"cached_tokens": None}}, None),
        ({"prompt_cache_hit_tokens": 5}, 5),
        ({"cached_tokens": 4}, 4),
        ({}, None),
    ],
)
def test_cached_tokens_are_found_under_every_name_and_absence_is_not_zero(
    details: dict[str, Any], cached: int | None
) -> None:
    """OpenAI's place and two vendors' own."""
    assert line_of(said("a"), STOP, usage(1, **details), DONE).cached_tokens == cached


@pytest.mark.parametrize(
    "written",
    [
        {"prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 476}},
        {"prompt_tokens_details": {"cached_tokens": 1024}, "cache_creation_input_tokens": 476},
    ],
)
def test_tokens_written_into_the_cache_are_part_of_the_prompt_and_no_hit(written: dict[str, Any]) -> None:
    """In OpenAI's dialect ``prompt_tokens`` holds them already; adding them would count them twice."""
    line = line_of(said("a"), STOP, usage(1, prompt=1600, **written), DONE)
    assert (line.prompt_tokens, line.cached_tokens) == (1600, 1024)


def test_reasoning_tokens_are_found_inside_the_details_and_beside_them() -> None:
    """They are a part of the completion."""
    assert (
        line_of(said("a"), STOP, usage(5, completion_tokens_details={"reasoning_tokens": 3}), DONE).reasoning_tokens
        == 3
    )
    assert line_of(said("a"), STOP, usage(5, reasoning_tokens=2), DONE).reasoning_tokens == 2


def test_usage_is_found_in_vendor_places() -> None:
    """Under ``x_groq``, and inside the choice."""
    counts = {"completion_tokens": 2, "prompt_tokens": 9}
    groq = line_of(said("a"), said("b"), chat({}, finish="stop", x_groq={"usage": counts}), DONE)
    inside = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counts}]})
    moonshot = line_of(said("a"), said("b"), inside, DONE)
    for line in (groq, moonshot):
        assert (line.output_tokens, line.token_source, line.prompt_tokens) == (2, "usage", 9)


def test_running_usage_counts_the_frames_without_text_to_the_next_event() -> None:
    """Two empty frames of a half-sent character, then its text: three tokens in that event."""
    frames = [
        said(text, usage={"completion_tokens": tokens})
        for text, tokens in (("a", 1), ("", 2), ("", 3), ("\U0001fae0", 4), ("!", 5))
    ]
    line = line_of(*frames, STOP, DONE)
    assert [item.tokens for item in line.tokens] == [1, 3, 1]
    assert per_token_latencies(line) == [1.0, 1.0, 1.0, 1.0]


def test_usage_on_the_last_content_chunk_alone_proves_no_single_event() -> None:
    """The total is known, its distribution is not."""
    line = line_of(said("a"), said("b"), chat({"content": "c"}, finish="stop", usage={"completion_tokens": 3}), DONE)
    assert line.output_tokens == 3
    assert [item.tokens for item in line.tokens] == [None, None, None]
    assert per_token_latencies(line) is None


def test_logprobs_prove_the_count_only_when_every_event_has_them() -> None:
    """One event without makes the sum a guess."""
    with_two = event({"choices": [{"delta": {"content": "ab"}, "logprobs": {"content": [{}, {}]}}]})
    completions = event({"choices": [{"text": "cd", "logprobs": {"tokens": ["c", "d"], "content": None}}]})
    proven = line_of(with_two, completions, STOP, usage(None), DONE)
    assert (proven.output_tokens, proven.token_source) == (4, "logprobs")
    assert [item.tokens for item in proven.tokens] == [2, 2]
    unproven = line_of(with_two, said("c"), STOP, DONE, usage(None))
    assert (unproven.output_tokens, unproven.output_tokens_estimate) == (None, 2)


@pytest.mark.parametrize(
    "counts",
    [
        {"completion": 0},
        {"completion": 2, "completion_tokens_details": {"reasoning_tokens": 9}},
        {"completion": 2, "completion_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 13},
    ],
)
def test_a_count_that_cannot_be_all_tokens_is_flagged(counts: dict[str, Any]) -> None:
    """Nothing counted for an answer with text; reasoning left out of the completion, in two ways."""
    line = line_of(said("a"), said("b"), STOP, usage(counts.pop("completion"), **counts), DONE)
    assert "usage_inconsistent" in line.flags


@pytest.mark.parametrize(("counted", "believed"), [(6, True), (7, False), (8, False), (600, False)])
def test_a_count_above_the_limit_that_was_sent_is_not_believed(counted: int, believed: bool) -> None:
    line = line_of(said("a"), said("b"), STOP, usage(counted), DONE, expected=Expected(max_tokens=6))
    assert ("usage_inconsistent" not in line.flags) is believed


def test_a_running_count_that_shrinks_is_flagged() -> None:
    """Tokens cannot be taken back, and no event holds fewer than none."""
    line = line_of(said("a", usage={"completion_tokens": 5}), said("b", usage={"completion_tokens": 2}), STOP, DONE)
    assert "usage_inconsistent" in line.flags
    assert line.output_tokens == 2
    assert [item.tokens for item in line.tokens] == [None, None]


def test_a_chunk_inside_a_token_holds_no_whole_token() -> None:
    """One token in two chunks: proven zero, and no latency per token can be told."""
    frames = [said(text, usage={"completion_tokens": tokens}) for text, tokens in (("Hel", 1), ("lo", 1), ("!", 2))]
    line = line_of(*frames, STOP, DONE)
    assert [item.tokens for item in line.tokens] == [1, 0, 1]
    assert per_token_latencies(line) is None


def test_fewer_counted_than_listed_tokens_are_flagged() -> None:
    """Logprobs name three tokens, usage counts two."""
    three = event({"choices": [{"delta": {"content": "abc"}, "logprobs": {"content": [{}, {}, {}]}}]})
    assert "usage_inconsistent" in line_of(three, STOP, usage(2), DONE).flags


def test_of_several_choices_only_one_total_is_a_count() -> None:
    """Running usage of each choice for itself is no total; a report of its own is."""
    running = [
        said(text, index=index, usage={"completion_tokens": tokens})
        for text, index, tokens in (("a", 0, 1), ("x", 1, 1), ("b", 0, 2), ("y", 1, 2))
    ]
    stops = [chat({}, finish="stop", index=index) for index in (0, 1)]
    unproven = line_of(*running, *stops, DONE)
    assert (unproven.output_tokens, unproven.output_tokens_estimate, unproven.choices) == (None, 4, 2)
    proven = line_of(*running, *stops, usage(4), DONE, expected=Expected(choices=2, output_tokens=2))
    assert (proven.output_tokens, proven.flags) == (4, ("n_choices",))
    assert {item.tokens for item in proven.tokens} == {None}


def test_an_estimate_is_given_only_for_an_answer_without_a_count() -> None:
    """A proven count needs none; a failed or forked answer gets none."""
    three = (said("a"), said("b"), said("c"))
    assert time_per_output_token_estimate(line_of(*three, STOP, DONE)) == 1.0
    assert time_per_output_token_estimate(line_of(*three, STOP, usage(3), DONE)) is None
    assert time_per_output_token_estimate(line_of(*three)) is None
    assert time_per_output_token_estimate(line_of(said("a"), STOP, DONE)) is None
