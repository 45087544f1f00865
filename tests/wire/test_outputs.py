"""What counts as output in a chunk, and in which channel."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.timeline import Channel
from phasegate.wire.deltas import pieces
from tests.wire.streams import DONE, STOP, chat, event, line_of, said, usage

CONTENT, REASONING, TOOL = Channel.CONTENT, Channel.REASONING, Channel.TOOL


@pytest.mark.parametrize(
    ("delta", "output"),
    [
        ({"role": "assistant"}, []),
        ({"role": "assistant", "content": ""}, []),
        ({"content": None}, []),
        ({"content": " "}, [(CONTENT, " ")]),
        ({"role": "assistant", "content": "a"}, [(CONTENT, "a")]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, [(CONTENT, "ab")]),
        ({"refusal": "no", "content": None}, [(CONTENT, "no")]),
        ({"reasoning_content": "t"}, [(REASONING, "t")]),
        ({"reasoning": "t", "content": ""}, [(REASONING, "t")]),
        ({"reasoning_content": "t", "reasoning": "t"}, [(REASONING, "t")]),
        ({"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]}, [(REASONING, "t")]),
        ({"reasoning_details": [{"type": "reasoning.summary", "summary": "s"}]}, [(REASONING, "s")]),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "QQ=="}]}, []),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]}, [(REASONING, "h")]),
        ({"reasoning_content": "t", "content": "a"}, [(REASONING, "t"), (CONTENT, "a")]),
        ({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "", "arguments": ""}}]}, []),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, [(TOOL, "f{}")]),
        ({"tool_calls": [{"function": {"name": "f"}}, {"function": {"name": "g"}}]}, [(TOOL, "fg")]),
        ({"tool_calls": [{"type": "custom", "custom": {"name": "c", "input": "i"}}]}, [(TOOL, "ci")]),
        ({"function_call": {"name": "f", "arguments": "("}}, [(TOOL, "f(")]),
    ],
)
def test_a_delta_holds_this_output(delta: dict[str, Any], output: list[tuple[Channel, str]]) -> None:
    """Text, reasoning and tool calls under every name; nothing that a reader would not be shown."""
    assert pieces({"index": 0, "delta": delta}) == output


def test_the_completions_dialect_has_its_text_in_the_choice() -> None:
    """``text`` is content; an empty one is not."""
    assert pieces({"text": "a"}) == [(CONTENT, "a")]
    assert pieces({"text": ""}) == []


def test_a_whole_message_counts_only_where_there_is_no_delta() -> None:
    """Some servers repeat the answer so far beside each delta."""
    assert pieces({"message": {"content": "all"}}) == [(CONTENT, "all")]
    assert pieces({"delta": {"content": "a"}, "message": {"content": "so far a"}}) == [(CONTENT, "a")]


def test_reasoning_and_answer_in_one_event_are_two_token_events_and_one_output_event() -> None:
    """Neither makes the answer look like a burst, nor gets the event's tokens twice."""
    both = chat({"reasoning_content": "t", "content": "a"}, usage={"completion_tokens": 2})
    line = line_of(both, said("b", usage={"completion_tokens": 3}), STOP, usage(3), DONE)
    assert [(item.channel, item.text, item.tokens) for item in line.tokens] == [
        (REASONING, "t", None),
        (CONTENT, "a", None),
        (CONTENT, "b", 1),
    ]
    assert "burst" not in line.flags
    assert "multi_token_chunks" in line.flags


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": 5},
        {"content": {"a": 1}},
        {"content": [1, None, {"type": "text"}, {"type": "text", "text": 3}]},
        {"reasoning_details": {"text": "x"}},
        {"tool_calls": {"function": {"name": "f"}}},
        {"tool_calls": [None, 1, {"function": "f"}, {"function": {"name": 1, "arguments": {"a": 1}}}]},
        {"function_call": "f"},
        [],
        "text",
        7,
        None,
        True,
    ],
)
def test_output_of_a_wrong_shape_is_no_output(wrong: object) -> None:
    """Nothing is made up from it and nothing is raised."""
    assert pieces({"delta": wrong}) == []
    assert line_of(event({"choices": [{"delta": wrong}]}), STOP, DONE, usage(0)).tokens == ()
