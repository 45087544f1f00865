"""Anthropic's Messages stream: what is a token, where counts come from, how it ends. Its cuts are in `test_any_cut`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from phasegate.core.metric import Undefined, time_per_output_token, time_to_first_output_token, time_to_first_token
from phasegate.core.timeline import Channel, Ending, Expected, Timeline
from phasegate.wire.decoding import decode
from tests.wire.streams import DONE, STOP, recorded, said, usage

ASKED = Expected(endpoint="messages")


def event(kind: str, **fields: Any) -> str:
    """One event of that type, named twice as the API does."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def start(**counts: Any) -> str:
    """The first event, with the prompt's counts."""
    message: dict[str, Any] = {"type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return event("message_start", message={**message, "usage": {"output_tokens": 1, **counts}})


def opened(kind: str, **more: Any) -> str:
    """The start of a block."""
    return event("content_block_start", index=0, content_block={"type": kind, **more})


def delta(kind: str, **more: Any) -> str:
    """A piece of a block."""
    return event("content_block_delta", index=0, delta={"type": kind, **more})


def text(piece: str) -> str:
    """A piece of the answer."""
    return delta("text_delta", text=piece)


def ended(output_tokens: object, reason: str | None = "end_turn", **counts: object) -> str:
    """Why it ends, and the counts."""
    return event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": output_tokens, **counts})


CLOSED = event("content_block_stop", index=0)
OVER = event("message_stop")
PING = event("ping")


def line_of(*bodies: str, **more: Any) -> Timeline:
    """The timeline of these bodies, one read a second from second 1 on."""
    return decode(recorded(bodies, **{"expected": ASKED, **more}))


def test_the_first_token_is_the_first_text_and_no_ping() -> None:
    """Nor the message's start, nor its block's."""
    line = line_of(start(input_tokens=9), opened("text", text=""), PING, text("A"), text("B"), CLOSED, ended(2), OVER)
    assert (line.status, line.text, line.finish_reason, line.model) == ("ok", "AB", "end_turn", "m")
    assert time_to_first_token(line) == 4.0
    assert (line.output_tokens, line.token_source, line.prompt_tokens) == (2, "usage", 9)
    assert (line.stream_end, line.flags, line.sample_valid) == (8.0, (), True)


def test_thinking_is_reasoning_and_the_answer_comes_after_it() -> None:
    """As with OpenAI's dialect: TTFT counts any channel, TTFO only the answer."""
    thought = delta("thinking_delta", thinking="hm")
    sealed = delta("signature_delta", signature="s")
    line = line_of(start(), opened("thinking", thinking=""), thought, sealed, CLOSED, text("A"), ended(9), OVER)
    assert [token.channel for token in line.tokens] == [Channel.REASONING, Channel.CONTENT]
    assert (time_to_first_token(line), time_to_first_output_token(line)) == (3.0, 6.0)
    assert (line.reasoning_text, line.text) == ("hm", "A")


@pytest.mark.parametrize(
    "unseen",
    [opened("redacted_thinking", data="x") + CLOSED, opened("thinking", thinking="") + CLOSED],
    ids=["redacted", "omitted"],
)
def test_thinking_that_is_not_shown_makes_tpot_undefined(unseen: str) -> None:
    """Its tokens are in the count, took their time before the first event, and are not told apart."""
    line = line_of(start(), unseen, opened("text"), text("A"), text("B"), CLOSED, ended(200), OVER)
    assert line.flags == ("hidden_reasoning", "multi_token_chunks")
    assert time_per_output_token(line) == Undefined("the model reasoned unseen, and those tokens are not counted apart")


def test_unseen_thinking_that_is_counted_apart_leaves_tpot_of_the_rest() -> None:
    """Two streamed tokens, one second apart."""
    counted = ended(200, output_tokens_details={"thinking_tokens": 198})
    line = line_of(start(), opened("redacted_thinking"), CLOSED, text("A"), text("B"), counted, OVER)
    assert time_per_output_token(line) == 1.0


def test_a_tool_call_is_output() -> None:
    """Its name, and its arguments as they are written; the first piece is often empty."""
    pieces = [delta("input_json_delta", partial_json=piece) for piece in ("", '{"a":', "1}")]
    line = line_of(start(), opened("tool_use", name="look", input={}), *pieces, CLOSED, ended(7, "tool_use"), OVER)
    assert (line.tool_text, len(line.tokens), line.finish_reason) == ('look{"a":1}', 3, "tool_use")


def test_the_prompt_is_all_of_its_parts() -> None:
    """Read anew, read from the cache, written into it; a later report takes the place of an earlier one."""
    counts = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30}
    line = line_of(start(**counts), text("A"), text("B"), ended(2), OVER)
    assert (line.prompt_tokens, line.cached_tokens) == (240, 200)
    assert "cached_prompt" in line.flags
    assert not line.sample_valid
    later = line_of(start(input_tokens=10), text("A"), ended(2, input_tokens=12, cache_read_input_tokens=5), OVER)
    assert (later.prompt_tokens, later.cached_tokens) == (17, 5)


@pytest.mark.parametrize(
    ("counts", "prompt", "cached"),
    [
        ({"input_tokens": 12, "cache_creation_input_tokens": 1188, "cache_read_input_tokens": 0}, 1200, 0),
        ({"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 1188}, 1200, 1188),
        ({"input_tokens": 0, "cache_creation_input_tokens": 1200}, 1200, None),
        ({"input_tokens": 1200, "cache_creation": {"ephemeral_5m_input_tokens": 0}}, 1200, None),
    ],
    ids=["written", "read", "written whole", "neither"],
)
def test_a_marked_prompt_has_the_same_count_whether_it_is_written_or_read(
    counts: dict[str, Any], prompt: int, cached: int | None
) -> None:
    """The end may tell the counts again; cumulative, they are not added."""
    line = line_of(start(**counts), text("A"), text("B"), ended(2, **counts), OVER)
    assert (line.prompt_tokens, line.cached_tokens) == (prompt, cached)


def test_the_count_of_the_start_is_not_the_count_of_the_answer() -> None:
    """A stream that lost its end has no count and is no answer."""
    line = line_of(start(input_tokens=3), text("A"), text("B"), CLOSED)
    assert (line.status, line.error_kind, line.output_tokens) == ("error", "truncated", None)


def test_an_end_mark_alone_is_no_success() -> None:
    """As [DONE] is none."""
    line = line_of(start(), text("A"), OVER)
    assert (line.status, line.error_kind) == ("error", "truncated")


def test_an_answer_without_its_end_mark_is_flagged() -> None:
    """Its counts came before."""
    line = line_of(start(), text("A"), text("B"), ended(2))
    assert (line.status, line.flags, line.output_tokens) == ("ok", ("no_done",), 2)


def test_a_lost_connection_is_one() -> None:
    """The tokens until then are kept."""
    line = line_of(start(), text("A"), ending=Ending.INCOMPLETE)
    assert (line.error_kind, len(line.tokens)) == ("connection_lost", 1)


def test_an_error_event_is_a_failure_with_the_servers_words() -> None:
    """Also after tokens, with HTTP 200, and when it comes named or unnamed."""
    words = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
    for broken in (event("error", **words), f"data: {json.dumps({'type': 'error', **words})}\n\n"):
        line = line_of(start(), text("A"), broken)
        assert (line.status, line.error_kind) == ("error", "stream_error")
        assert line.error_message == "Overloaded (type: overloaded_error)"


def test_a_refused_request_keeps_its_status_and_words() -> None:
    """HTTP 429 with an error object."""
    body = json.dumps({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}})
    line = line_of(body, status=429, content_type="application/json")
    assert (line.error_kind, line.error_message) == ("http_429", "slow down (type: rate_limit_error)")


def test_a_message_without_a_word_is_empty() -> None:
    """Answered, but not a sample."""
    assert line_of(start(), ended(1), OVER).status == "empty"


def test_events_of_a_new_kind_are_passed_over() -> None:
    """The API may add some at any time."""
    line = line_of(start(), event("message_mood", mood="fine"), delta("hum_delta", hum="mm"), text("A"), ended(1), OVER)
    assert (line.status, line.text, line.flags) == ("ok", "A", ())


def test_names_that_are_missing_are_taken_from_the_payload_or_the_event() -> None:
    """Some gateways send only one of the two."""
    unnamed = line_of(*(body.split("\n", 1)[1] for body in (start(), text("A"), ended(1), OVER)))
    assert (unnamed.status, unnamed.text) == ("ok", "A")


def test_chunks_of_openai_are_refused_by_name() -> None:
    """Whoever asked for messages must not read silence out of another dialect."""
    line = line_of(said("A"), said("B"), STOP, usage(2), DONE)
    assert (line.status, line.error_kind, line.tokens) == ("error", "wrong_dialect", ())
    assert line.error_message is not None
    assert "OpenAI's chat completions" in line.error_message


@pytest.mark.parametrize("strange", [None, 3, [], "x", {"type": 3}, {"delta": 4}, {"usage": []}])
def test_nothing_makes_it_raise(strange: object) -> None:
    """Whatever stands where an object should."""
    kinds = ("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta")
    bodies = [event(kind, message=strange, content_block=strange, delta=strange, usage=strange) for kind in kinds]
    line = line_of(*bodies, event("content_block_delta", delta={"type": {}, "text": 3}), f"data: {strange!r}\n\n", OVER)
    assert line.status == "error"
