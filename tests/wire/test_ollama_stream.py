"""Ollama's own chat stream: lines, not events; counts and the server's times on the last one; cuts anywhere."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.metric import time_per_output_token, time_to_first_output_token, time_to_first_token
from phasegate.core.timeline import Ending, Expected, Read, Timeline
from phasegate.wire.decoding import decode
from tests.engines.replay.streams import DOCUMENTED
from tests.wire.streams import DONE, recorded, said
from tests.wire.test_robustness import problems

NDJSON = "application/x-ndjson"
ENDPOINTS = ("messages", "ollama")


def said_line(content: str = "", **more: Any) -> str:
    """A piece of the message."""
    message = {"role": "assistant", "content": content, **more}
    return json.dumps({"model": "m", "message": message, "done": False}) + "\n"


def last_line(**more: Any) -> str:
    """The end of it."""
    return json.dumps({"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, **more}) + "\n"


def line_of(*bodies: str, **more: Any) -> Timeline:
    """The timeline of these bodies, one read a second from second 1 on."""
    expected = Expected(endpoint="ollama")
    return decode(recorded(bodies, **{"expected": expected, "content_type": NDJSON, **more}))


END = last_line(done_reason="stop", prompt_eval_count=9, eval_count=3, eval_duration=2_000_000_000)


def test_a_line_is_a_token_when_it_holds_text() -> None:
    """An empty one is none; thinking is reasoning."""
    line = line_of(said_line(), said_line(thinking="hm"), said_line("A"), said_line("B"), END)
    assert (line.status, line.flags, line.text, line.reasoning_text) == ("ok", (), "AB", "hm")
    assert (time_to_first_token(line), time_to_first_output_token(line), time_per_output_token(line)) == (2.0, 3.0, 1.0)
    assert (line.output_tokens, line.token_source, line.prompt_tokens) == (3, "usage", 9)
    assert (line.finish_reason, line.model, line.server_timings) == ("stop", "m", {"eval_duration": 2e9})


def test_a_tool_call_is_output() -> None:
    """It comes whole, its arguments as an object."""
    call = {"function": {"name": "look", "arguments": {"a": 1}}}
    assert line_of(said_line(tool_calls=[call]), END).tool_text == 'look{"a": 1}'


def test_an_error_line_is_a_failure() -> None:
    """With HTTP 200, after tokens."""
    line = line_of(said_line("A"), json.dumps({"error": "gone"}) + "\n")
    assert (line.error_kind, line.error_message) == ("stream_error", "gone")


def test_a_stream_without_its_last_line_is_none() -> None:
    """Nor is one that was cut inside it."""
    assert line_of(said_line("A"), said_line("B")).error_kind == "truncated"
    assert line_of(said_line("A"), END[:40], ending=Ending.INCOMPLETE).error_kind == "connection_lost"


def test_a_last_line_without_its_end_is_read() -> None:
    """Where the body ended in order."""
    assert line_of(said_line("A"), said_line("B"), END.rstrip("\n")).status == "ok"


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ((said("A"), said("B"), DONE), "OpenAI's chat completions"),
        ((json.dumps({"choices": [{"index": 0, "delta": {"content": "A"}}]}) + "\n",), "OpenAI's chat completions"),
        ((json.dumps({"candidates": []}) + "\n",), "Gemini's generateContent"),
    ],
)
def test_another_dialect_is_refused_by_name(bodies: tuple[str, ...], words: str) -> None:
    """Events, or lines of somebody else's."""
    line = line_of(*bodies)
    assert line.error_kind == "wrong_dialect"
    assert words in (line.error_message or "")


def test_an_event_streams_content_type_is_odd() -> None:
    """The lines are read all the same."""
    line = line_of(said_line("A"), said_line("B"), said_line("C"), END, content_type="text/event-stream")
    assert line.flags == ("wrong_content_type",)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_cuts_anywhere_leave_the_timeline_the_same(data: st.DataObject) -> None:
    """A piece keeps the moment of its read, so nothing may change; also inside a character."""
    recording = DOCUMENTED["ollama-native"].recording()
    whole = decode(recording)
    reads = []
    for read in recording.reads:
        places = sorted(data.draw(st.sets(st.integers(1, len(read.data) - 1), max_size=3)))
        edges = [0, *places, len(read.data)]
        reads += [Read(read.at, read.data[left:right]) for left, right in itertools.pairwise(edges)]
    assert decode(replace(recording, reads=tuple(reads))) == whole


def test_every_single_cut_leaves_the_timeline_the_same() -> None:
    """Exhaustively, with the first part coming earlier: only whole lines count."""
    recording = DOCUMENTED["ollama-native"].recording()
    body = b"".join(read.data for read in recording.reads)
    whole = decode(replace(recording, reads=(Read(1.0, body),)))
    for place in range(1, len(body)):
        cut = decode(replace(recording, reads=(Read(1.0, body[:place]), Read(1.0, body[place:]))))
        assert cut == whole, f"cut at {place}"


SCRAPS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        "type", "message", "done", "done_reason", "eval_count", "delta", "usage", "content_block", "model", "error",
        "content", "thinking", "text", "partial_json", "output_tokens", "input_tokens", "stop_reason", "choices",
    ]
)  # fmt: skip
KINDS = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "ping"]
)
OBJECTS = st.dictionaries(NAMES, SCRAPS | KINDS | st.dictionaries(NAMES, SCRAPS | KINDS, max_size=4), max_size=5)


@given(payloads=st.lists(OBJECTS, max_size=8), endpoint=st.sampled_from(ENDPOINTS), events=st.booleans())
@settings(max_examples=300, deadline=None)
def test_nothing_makes_the_native_decoders_raise(payloads: list[dict[str, Any]], endpoint: str, events: bool) -> None:
    """Known names with any values, as events or as lines."""
    lines = [json.dumps(payload) for payload in payloads]
    bodies = [f"data: {line}\n\n" if events else f"{line}\n" for line in lines]
    assert problems(decode(recorded(bodies, expected=Expected(endpoint=endpoint)))) == []


@given(bodies=st.lists(st.binary(max_size=100), max_size=6), endpoint=st.sampled_from(ENDPOINTS))
@settings(max_examples=150, deadline=None)
def test_random_bytes_do_not_either(bodies: list[bytes], endpoint: str) -> None:
    """Any bytes."""
    assert problems(decode(recorded(bodies, expected=Expected(endpoint=endpoint)))) == []
