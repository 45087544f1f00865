"""Text in fields that nobody knows: it is output where it comes alone, and none where it labels or decorates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from phasegate.core.metric import (
    Undefined,
    time_per_output_token,
    time_to_first_output_token,
    time_to_first_token,
)
from phasegate.core.timeline import Channel, Expected, Timeline
from phasegate.wire.decoding import decode
from tests.wire.streams import DONE, STOP, chat, event, line_of, recorded, said, usage

ROLE = chat({"role": "assistant", "content": ""})


def thought(delta: dict[str, Any]) -> Timeline:
    """Four chunks with that delta and then two of the answer, one a second; six tokens."""
    return line_of(*[chat(delta)] * 4, said("yes"), said(" no"), STOP, usage(6), DONE)


@pytest.mark.parametrize(
    ("delta", "field"),
    [
        ({"role": "assistant", "content": None, "scratch": " t"}, "delta.scratch"),
        ({"content": "", "analysis": " t"}, "delta.analysis"),
        ({"scratch": {"text": " t"}}, "delta.scratch.text"),
        ({"scratch": [{"type": "note", "words": " t", "id": "n1"}]}, "delta.scratch.words"),
        ({"extra": {"inner_voice": " t", "request_id": "a b"}}, "delta.extra.inner_voice"),
        ({"content": {"body": " t"}}, "delta.content.body"),
        ({"reasoning": {"steps": [" t"]}}, "delta.reasoning.steps"),
        ({"tool_calls": [{"call": {"plan": " t"}}]}, "delta.tool_calls.call.plan"),
        ({"scratch": "好"}, "delta.scratch"),
        ({"scratch": "t"}, "delta.scratch"),
    ],
)
def test_text_alone_in_an_unknown_field_is_output(delta: dict[str, Any], field: str) -> None:
    """C010 and its kind: it sets TTFT, the server's count sets TPOT, and the field is named."""
    line = thought(delta)
    assert (line.status, line.flags, line.unnamed_fields) == ("ok", ("unnamed_text",), (field,))
    assert [one.channel for one in line.tokens] == [Channel.UNNAMED] * 4 + [Channel.CONTENT] * 2
    assert (time_to_first_token(line), time_to_first_output_token(line)) == (1.0, 5.0)
    assert time_per_output_token(line) == 1.0
    assert line.text == "yes no"


@pytest.mark.parametrize(
    ("chunk", "field"),
    [
        ({"choices": [{"index": 0, "delta": {}, "monologue": " t"}]}, "monologue"),
        ({"choices": [{"index": 0, "delta": " t"}]}, "delta"),
        ({"choices": [{"index": 0, "delta": {}}], "monologue": " t"}, "monologue"),
        ({"choices": [], "monologue": " t"}, "monologue"),
        ({"object": "chat.completion.chunk", "monologue": " t"}, "monologue"),
        ({"choices": [{"delta": {}, "message": {"role": "assistant", "content": " t"}}]}, "message.content"),
    ],
)
def test_text_elsewhere_in_a_chunk_is_output_too(chunk: dict[str, Any], field: str) -> None:
    """Beside the delta, in its place, or at the top of the chunk."""
    line = line_of(ROLE, *[event(chunk)] * 3, said("yes"), STOP, usage(4), DONE)
    assert (line.flags, line.unnamed_fields) == (("unnamed_text",), (field,))
    assert time_to_first_token(line) == 2.0


def test_an_answer_that_is_all_of_it_unknown_is_measured() -> None:
    """Tokens came and were counted; which of them are the answer is not known."""
    line = line_of(ROLE, *[chat({"answer": " w"})] * 3, STOP, usage(3), DONE)
    assert (line.status, line.sample_valid, line.unnamed_text) == ("ok", True, " w w w")
    assert (time_to_first_token(line), time_per_output_token(line)) == (2.0, 1.0)
    assert isinstance(time_to_first_output_token(line), Undefined)


def test_one_thought_in_one_chunk_is_output() -> None:
    """The first one, with a role beside it: a sentence is no label."""
    first = chat({"role": "assistant", "scratch": "Let me see."})
    line = line_of(first, said("yes"), said(" no"), STOP, usage(9), DONE)
    assert time_to_first_token(line) == 1.0
    assert line.flags == ("multi_token_chunks", "unnamed_text")


def test_reasoning_that_is_counted_and_came_in_an_unknown_field_was_not_hidden() -> None:
    """Nothing is subtracted from the tokens that were streamed."""
    counts = usage(6, completion_tokens_details={"reasoning_tokens": 4})
    line = line_of(*[chat({"scratch": " t"})] * 4, said("yes"), said(" no"), STOP, counts, DONE)
    assert line.flags == ("unnamed_text",)
    assert time_per_output_token(line) == 1.0


@pytest.mark.parametrize(
    "field",
    [
        "id", "request_id", "system_fingerprint", "service_tier", "obfuscation", "stop_reason", "provider", "signature",
        "content_filter_results", "citations", "status", "event", "created_at", "conversationId", "encrypted_content",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["delta", "choice", "chunk"])
def test_what_is_known_to_be_no_output_starts_no_clock(field: str, place: str) -> None:
    """In every chunk from the first on, with a new value each time."""

    def chunk(number: int, content: str, reason: str | None = None) -> str:
        more = {field: f"val ue {number}"}
        delta = {"content": content, **(more if place == "delta" else {})}
        choice = {"index": 0, "delta": delta, "finish_reason": reason, **(more if place == "choice" else {})}
        return event({"choices": [choice], **(more if place == "chunk" else {})})

    line = line_of(chunk(0, ""), chunk(1, "a"), chunk(2, "b"), chunk(3, "", "stop"), usage(2), DONE)
    assert (line.flags, time_to_first_token(line), len(line.tokens)) == ((), 2.0, 2)


@pytest.mark.parametrize(
    ("first", "later", "last", "flags"),
    [
        ({"ticket": "abc-123"}, {}, {}, ()),  # a label on the first chunk
        ({}, {}, {"ending": "complete"}, ()),  # a state on the last one
        ({}, {}, {"epilogue": "a whole sentence"}, ()),
        ({"ticket": "a b"}, {"ticket": "a b"}, {"ticket": "a b"}, ()),  # the same on every chunk
        ({}, {"echo": "a"}, {}, ()),  # the text once more
        ({}, {}, {"whole": "aaa"}, ()),  # all of the text once more
        ({"blob": "QUJD" * 40}, {}, {}, ()),  # data in letters
        ({"mood": "x y"}, {"mood": "varies"}, {"mood": "z"}, ("unnamed_text",)),  # rides along: remarked, no token
    ],
)
def test_what_labels_or_decorates_is_no_output(
    first: dict[str, str], later: dict[str, str], last: dict[str, str], flags: Sequence[str]
) -> None:
    """Judged by how it comes over the whole answer."""
    contents = [chat({"content": "a", **later}) for _ in range(3)]
    start = chat({"role": "assistant", "content": "", **first})
    line = line_of(start, *contents, chat(last, finish="stop"), usage(3), DONE)
    assert (line.flags, time_to_first_token(line), len(line.tokens)) == (tuple(flags), 2.0, 3)


def test_events_that_are_no_chunks_are_remarked_and_never_output() -> None:
    """A state in words before the answer is no token of it."""
    status = event({"progress": "searching the web"})
    line = line_of(status, said("a"), said("b"), STOP, usage(2), DONE)
    assert (line.flags, line.unnamed_fields) == (("unnamed_text",), ("progress",))
    assert time_to_first_token(line) == 2.0


def test_names_are_few_short_and_clean() -> None:
    """A server may call its fields anything."""
    line = line_of(*[chat({f"sk-verysecret12{n}" + "x" * 999: " a" for n in range(50)})] * 2, STOP, usage(2), DONE)
    assert len(line.unnamed_fields) == 4
    assert all(len(name) <= 60 and "verysecret" not in name for name in line.unnamed_fields)


def messages(kind: str, **more: Any) -> str:
    """One event of a Messages stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n"


def delta(**fields: Any) -> str:
    """One delta of its only block."""
    return messages("content_block_delta", index=0, delta=fields)


def opened(**fields: Any) -> str:
    """The beginning of its only block."""
    return messages("content_block_start", index=0, content_block=fields)


@pytest.mark.parametrize(
    ("first", "channel", "flags"),
    [
        (delta(type="reasoning_delta", reasoning=" t"), Channel.UNNAMED, ("unnamed_text",)),
        (delta(type="thinking_delta", text=" t"), Channel.UNNAMED, ("unnamed_text",)),
        (delta(type="thinking_delta", thinking={"text": " t"}), Channel.REASONING, ()),
        (delta(type="text_delta", text=[{"text": " t"}]), Channel.CONTENT, ()),
        (delta(type="input_json_delta", partial_json={"a": 1}), Channel.TOOL, ()),
        (messages("content_block_thinking", delta={"words": " t"}), Channel.UNNAMED, ("unnamed_text",)),
        (opened(type="plan", plan="a b"), Channel.UNNAMED, ("unnamed_text",)),
        (opened(type="tool_use", name="f", input={"a": 1}), Channel.TOOL, ()),
    ],
)
def test_messages_lose_nothing_either(first: str, channel: Channel, flags: tuple[str, ...]) -> None:
    """Deltas and blocks of unknown kinds, known ones of another shape."""
    start = messages("message_start", message={"model": "m", "usage": {"input_tokens": 9}})
    end = messages("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
    bodies = [start, first, delta(type="text_delta", text="a"), delta(type="text_delta", text="b"), end]
    line = decode(recorded([*bodies, messages("message_stop")], expected=Expected(endpoint="messages")))
    assert (line.status, line.flags, line.tokens[0].channel) == ("ok", flags, channel)
    assert (time_to_first_token(line), time_per_output_token(line)) == (2.0, 1.0)


def test_seals_and_results_of_tools_are_no_output_of_messages() -> None:
    """Signatures, citations, and what a search found."""
    start = messages("message_start", message={"model": "m", "usage": {"input_tokens": 9}})
    silent = [
        opened(type="web_search_tool_result", content=[{"title": "a b", "text": "a page"}]),
        delta(type="signature_delta", signature="a b"),
        delta(type="citations_delta", citation={"type": "char_location", "cited_text": "a b"}),
    ]
    end = messages("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
    texts = [delta(type="text_delta", text="a"), delta(type="text_delta", text="b")]
    bodies = [start, *silent, *texts, end, messages("message_stop")]
    line = decode(recorded(bodies, expected=Expected(endpoint="messages")))
    assert (line.flags, time_to_first_token(line)) == ((), 5.0)


@pytest.mark.parametrize(
    ("first", "channel", "flags"),
    [
        ({"message": {"role": "assistant", "content": "", "scratch": " t"}}, Channel.UNNAMED, ("unnamed_text",)),
        ({"message": {"role": "assistant", "content": "", "reasoning_content": " t"}}, Channel.REASONING, ()),
        ({"message": {"role": "assistant", "content": ""}, "monologue": " t"}, Channel.UNNAMED, ("unnamed_text",)),
        ({"response": " t"}, Channel.CONTENT, ()),
        ({"response": "", "thinking": " t"}, Channel.REASONING, ()),
    ],
)
def test_ollama_loses_nothing_either(first: dict[str, Any], channel: Channel, flags: tuple[str, ...]) -> None:
    """Unknown fields of a line and of its message, and the lines of completion."""
    more = {"model": "m", "created_at": "2026-01-01 00:00:00", "done": False}
    texts = [{**more, "message": {"role": "assistant", "content": word}} for word in ("a", "b")]
    end = {**more, "done": True, "done_reason": "stop", "eval_count": 3, "prompt_eval_count": 9}
    bodies = [json.dumps(one) + "\n" for one in ({**more, **first}, *texts, end)]
    recording = recorded(bodies, expected=Expected(endpoint="ollama"), content_type="application/x-ndjson")
    line = decode(recording)
    assert (line.status, line.flags, line.tokens[0].channel) == ("ok", flags, channel)
    assert (time_to_first_token(line), time_per_output_token(line)) == (1.0, 1.0)
