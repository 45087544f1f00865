"""What counts as output in a chunk, and in which channel."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.core.timeline import Channel
from phasegate.wire.deltas import output_of
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
        ({"function_call": "f"}, [(TOOL, "f")]),
        ({"reasoning_text": "t"}, [(REASONING, "t")]),
        ({"thinking": "t"}, [(REASONING, "t")]),
        ({"thought": "t", "content": None}, [(REASONING, "t")]),
        ({"thought": True, "content": "a"}, [(CONTENT, "a")]),
        ({"reasoning": {"text": "t"}}, [(REASONING, "t")]),
        ({"reasoning_details": {"text": "x"}}, [(REASONING, "x")]),
        ({"reasoning": {"summary": [{"type": "summary_text", "text": "t"}]}}, [(REASONING, "t")]),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "x"}]}, [(REASONING, "t")]),
        ({"content": {"type": "text", "text": "a"}}, [(CONTENT, "a")]),
        ({"content": {"parts": [{"text": "a"}, {"text": "b"}]}}, [(CONTENT, "ab")]),
        ({"content": {"type": "text", "text": {"value": "a", "annotations": []}}}, [(CONTENT, "a")]),
        ({"content": ["a", "b"]}, [(CONTENT, "ab")]),
        ({"content": [{"type": "output_text", "text": "a"}]}, [(CONTENT, "a")]),
        ({"content": [{"text": "t", "thought": True}, {"text": "a"}]}, [(REASONING, "t"), (CONTENT, "a")]),
        ({"content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]}, [(TOOL, 'f{"a": 1}')]),
        ({"content": [{"type": "web_search_tool_result", "content": [{"text": "page"}]}]}, []),
        ({"content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}, []),
        ({"refusal": [{"type": "refusal", "refusal": "no"}]}, [(CONTENT, "no")]),
        ({"audio": {"id": "x", "transcript": "hi", "data": "UklG"}}, [(CONTENT, "hi")]),
        ({"audio": {"id": "x", "data": "UklG"}}, []),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": [1]}}}]}, [(TOOL, 'f{"a": [1]}')]),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}, [(TOOL, "f")]),
        ({"tool_calls": [{"function": {"arguments": ["{", "}"]}}]}, [(TOOL, "{}")]),
        ({"tool_calls": [{"function": {"arguments": [{"type": "text", "text": "{"}]}}]}, [(TOOL, "{")]),
        ({"tool_calls": [{"function": {"arguments": [{"a": 1}]}}]}, [(TOOL, '[{"a": 1}]')]),
        ({"tool_calls": [{"name": "f", "arguments": "{"}]}, [(TOOL, "f{")]),
        ({"tool_calls": {"0": {"function": {"name": "f"}}}}, [(TOOL, "f")]),
        ({"tool_calls": {"function": {"name": "f"}}}, [(TOOL, "f")]),
        ({"tool_calls": [{"function": {"name": "f", "parameters": {"a": 1}}}]}, [(TOOL, 'f{"a": 1}')]),
        ({"tool_calls": [None, 1, {"function": "f"}, {"function": {"name": 1}}]}, [(TOOL, "f")]),
    ],
)
def test_a_delta_holds_this_output(delta: dict[str, Any], output: list[tuple[Channel, str]]) -> None:
    """Text, reasoning and tool calls under every name; nothing that a reader would not be shown."""
    assert output_of({"index": 0, "delta": delta}).pieces == output


def test_a_choice_may_hold_its_text_beside_an_empty_delta() -> None:
    """Under the names of the other dialect, or of reasoning."""
    assert output_of({"delta": {}, "text": "a"}).pieces == [(CONTENT, "a")]
    assert output_of({"delta": {"content": "a"}, "text": "a"}).pieces == [(CONTENT, "a")]
    assert output_of({"delta": {}, "reasoning_content": "t"}).pieces == [(REASONING, "t")]
    assert output_of({"text": {"value": "a"}}).pieces == [(CONTENT, "a")]


def test_the_completions_dialect_has_its_text_in_the_choice() -> None:
    """``text`` is content; an empty one is not."""
    assert output_of({"text": "a"}).pieces == [(CONTENT, "a")]
    assert output_of({"text": ""}).pieces == []


def test_a_whole_message_counts_only_where_there_is_no_delta() -> None:
    """Some servers repeat the answer so far beside each delta."""
    assert output_of({"message": {"content": "all"}}).pieces == [(CONTENT, "all")]
    assert output_of({"delta": {"content": "a"}, "message": {"content": "so far a"}}).pieces == [(CONTENT, "a")]


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
        {"content": {"a": "encrypted", "type": "reasoning.encrypted"}},
        {"content": [1, None, {"type": "text"}, {"type": "text", "text": 3}]},
        {"reasoning_details": {"text": 1}},
        {"reasoning": {"effort": "high", "summary": None}},
        {"tool_calls": {"function": {"name": 1}}},
        {"tool_calls": [None, 1, {"function": 2}, {"function": {"name": 1, "arguments": 7}}]},
        {"function_call": 1},
        [],
        7,
        None,
        True,
    ],
)
def test_output_of_a_wrong_shape_is_no_output(wrong: object) -> None:
    """Nothing is made up from it and nothing is raised."""
    assert output_of({"delta": wrong}).pieces == []
    assert line_of(event({"choices": [{"delta": wrong}]}), STOP, DONE, usage(0)).tokens == ()
