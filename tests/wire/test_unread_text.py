"""Answers whose text nobody understood: the message says where it may have been, or how it was encoded."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pytest

from phasegate.core.timeline import Timeline
from phasegate.wire import ollama_stream
from phasegate.wire.openai_stream import decode
from tests.wire.streams import DONE, STOP, chat, event, line_of, recorded, said, usage


def answer(delta: object, **counts: Any) -> Timeline:
    """Three chunks with that delta, after one with the role, and a count."""
    return line_of(chat({"role": "assistant", "content": ""}), *[chat(delta)] * 3, STOP, usage(3, **counts), DONE)


@pytest.mark.parametrize(
    ("delta", "seen"),
    [
        ({"content": 0}, "delta.content (a number)"),
        ({"content": [7]}, "delta.content (a list)"),
        ({"content": "", "thoughts": 5, "answer": {"words": 3}}, "delta.answer"),
        ({"answer": "A" * 99}, "delta.answer"),
        (7, "delta (a number)"),
    ],
)
def test_fields_that_held_something_are_named(delta: object, seen: str) -> None:
    """In the words of the stream, so that a reader finds them there; where it holds text, that is output (C010)."""
    line = answer(delta)
    assert line.status == "empty"
    told = f"3 tokens were counted, but no chunk held text in a field that is known; fields seen: {seen}"
    assert line.error_message == told


def test_what_is_no_text_by_its_name_is_not_named() -> None:
    """Roles, flags, encrypted reasoning and the parts of a choice are understood well enough."""
    line = answer({"role": "assistant", "content": None, "tool_calls": [], "reasoning_details": [{"data": "x"}]})
    assert line.error_message == "3 tokens were counted, but no chunk held text in a field that is known"
    spent = answer({}, completion_tokens_details={"reasoning_tokens": 3})
    assert str(spent.error_message).startswith("3 tokens were counted (3 of them of reasoning), but no chunk")


def test_an_answer_that_is_simply_empty_has_no_message() -> None:
    """Nothing was counted and nothing came."""
    assert line_of(chat({"content": ""}), STOP, usage(0), DONE).error_message is None


def test_names_are_few_short_and_clean() -> None:
    """A server may call its fields anything."""
    line = line_of(chat({f"sk-verysecret12{n}" + "x" * 999: 1 for n in range(50)}), STOP, DONE)
    assert "verysecret" not in str(line.error_message)
    assert len(str(line.error_message)) < 400


def test_completions_are_read_like_chat() -> None:
    """There the fields are those of the choice itself."""
    line = line_of(event({"choices": [{"index": 0, "output": 7, "finish_reason": "stop"}]}), usage(1), DONE)
    assert line.error_message == "1 token was counted, but no chunk held text in a field that is known; " \
                                 "fields seen: output"  # fmt: skip


@pytest.mark.parametrize("status", [200, 503])
def test_an_encoded_answer_names_the_encoding(status: int) -> None:
    """Its bytes are no text, and nothing is guessed from them."""
    body = gzip.compress("".join((said(" a"), STOP, usage(1), DONE)).encode())
    plain = recorded([body], status=status)
    line = decode(replace(plain, headers=(*plain.headers, ("content-encoding", "gzip"))))
    assert line.error_kind == ("protocol" if status == 200 else "http_503")
    assert line.error_message == "the answer is encoded as gzip, though it was asked for as it is: " \
                                 "does a proxy compress it?"  # fmt: skip


def test_an_encoding_that_is_none_changes_nothing() -> None:
    """``identity`` says that there is none."""
    plain = recorded([said(" a"), STOP, usage(1), DONE])
    assert decode(replace(plain, headers=(*plain.headers, ("content-encoding", "identity")))).status == "ok"


def test_a_refusal_may_have_any_content_type() -> None:
    """An error page is no stream, in Ollama's dialect neither."""
    refusal = recorded(['{"error": "not found"}'], status=404, content_type="application/json")
    assert (ollama_stream.decode(refusal).flags, decode(refusal).flags) == ((), ())
