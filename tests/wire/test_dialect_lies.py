"""Servers that speak another dialect, half of one, or lie about their counts: measured right, or refused by name.

Every stream here has one truth: 20 tokens, the first after 1 s, the others at 100 ms. Whatever the server says of
them, a time is either that truth or not given at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from phasegate.core.metric import Undefined, time_per_output_token, time_to_first_token
from phasegate.core.timeline import Ending, Expected, Read, Recording, Timeline
from phasegate.wire.decoding import decode

TOKENS = 20
FIRST = 1.0
GAP = 0.1
WORDS = [f" w{place:03}" for place in range(TOKENS)]


def event(payload: object) -> str:
    """One event."""
    return f"data: {json.dumps(payload)}\n\n"


def chat(delta: object, finish: str | None = None, **more: Any) -> str:
    """A chat chunk."""
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return event({**chunk, **more})


def text(piece: str, finish: str | None = None, **more: Any) -> str:
    """A completions chunk."""
    chunk = {"object": "text_completion", "choices": [{"index": 0, "text": piece, "finish_reason": finish}]}
    return event({**chunk, **more})


def counted(**usage: object) -> str:
    """The extra chunk with the counts."""
    return event({"object": "chat.completion.chunk", "choices": [], "usage": usage})


def usage_of(tokens: object) -> str:
    """The usual counts."""
    return counted(prompt_tokens=9, completion_tokens=tokens)


DONE = "data: [DONE]\n\n"
STOP = chat({}, "length")
PIECES = [chat({"content": word}) for word in WORDS]
END = [STOP, usage_of(TOKENS), DONE]


def recorded(
    bodies: Sequence[str], tail: Sequence[str] = (), *, endpoint: str = "chat", content_type: str = "text/event-stream"
) -> Recording:
    """The first body after 1 s, the others every 100 ms; the tail comes with the last of them."""
    reads = [Read(FIRST + GAP * place, body.encode()) for place, body in enumerate(bodies)]
    last = reads[-1].at
    reads += [Read(last + 0.001 * (place + 1), body.encode()) for place, body in enumerate(tail)]
    return Recording(
        request_id="r",
        due=0.0,
        sent=0.0,
        connect_time=0.0,
        http_status=200,
        headers=(("content-type", content_type),),
        headers_at=0.5,
        reads=tuple(reads),
        ending=Ending.EOF,
        ended_at=reads[-1].at,
        expected=Expected(endpoint=endpoint, max_tokens=TOKENS),
    )


def falsehoods(line: Timeline) -> list[str]:
    """Times of an answer that are given and are not the truth."""
    ttft, tpot = time_to_first_token(line), time_per_output_token(line)
    found = []
    if not isinstance(ttft, Undefined) and ttft != pytest.approx(FIRST):
        found.append(f"ttft {ttft}")
    if not isinstance(tpot, Undefined) and tpot != pytest.approx(GAP):
        found.append(f"tpot {tpot}")
    return found


@dataclass(frozen=True)
class Lie:
    """What comes, and what must be made of it.

    ``tpot`` says whether time per token can be known; ``flags`` are exactly those raised.
    """

    recording: Recording
    flags: tuple[str, ...]
    tpot: bool = True


def lying(tokens: object, *flags: str, tpot: bool = False) -> Lie:
    """Twenty honest chunks and a count that is not theirs."""
    return Lie(recorded(PIECES, [STOP, usage_of(tokens), DONE]), flags, tpot)


def growing() -> list[str]:
    """Each chunk repeats all the text so far."""
    return [chat({"content": "".join(WORDS[: place + 1])}) for place in range(TOKENS)]


def running(count: Callable[[int], int]) -> list[str]:
    """A count on every chunk."""
    usages = [{"prompt_tokens": 9, "completion_tokens": count(place + 1)} for place in range(TOKENS)]
    return [chat({"content": word}, usage=usage) for word, usage in zip(WORDS, usages, strict=True)]


MEASURED: dict[str, Lie] = {
    "honest": Lie(recorded(PIECES, END), ()),
    "count x 10": lying(10 * TOKENS, "multi_token_chunks", "usage_inconsistent"),
    "count x 2": lying(2 * TOKENS, "multi_token_chunks", "usage_inconsistent"),
    "count / 10": lying(TOKENS // 10, "split_tokens", "usage_inconsistent"),
    "count / 2": lying(TOKENS // 2, "split_tokens", "usage_inconsistent"),
    "count / 4": lying(TOKENS // 4, "split_tokens", "usage_inconsistent"),
    "count a third too small": lying(13, "split_tokens", "usage_inconsistent"),
    "count one too small": lying(TOKENS - 1, "split_tokens", "usage_inconsistent"),
    "count one too large": lying(TOKENS + 1, "multi_token_chunks", "usage_inconsistent"),
    "count a tenth too large": lying(TOKENS + 2, "multi_token_chunks", "usage_inconsistent"),
    "count a fifth too large": lying(TOKENS + 4, "multi_token_chunks", "usage_inconsistent"),
    "count / 2, ended by itself": Lie(
        recorded(PIECES, [chat({}, "stop"), usage_of(TOKENS // 2), DONE]), ("split_tokens", "usage_inconsistent"), False
    ),
    "count of one": lying(1, "split_tokens", "usage_inconsistent"),
    "count of zero": lying(0, "usage_inconsistent"),
    "count below zero": lying(-5, "usage_missing"),
    "count as text": lying("20", "usage_missing"),
    "count that is no number": lying(1e300, "usage_missing"),
    "no count": Lie(recorded(PIECES, [STOP, DONE]), ("usage_missing",), tpot=False),
    "counts in Anthropic's words": Lie(
        recorded(PIECES, [STOP, counted(input_tokens=9, output_tokens=TOKENS), DONE]), ("usage_missing",), tpot=False
    ),
    "more reasoning than output": Lie(
        recorded(
            PIECES,
            [STOP, counted(completion_tokens=TOKENS, completion_tokens_details={"reasoning_tokens": 500}), DONE],
        ),
        ("usage_inconsistent",),
        tpot=False,
    ),
    "unseen reasoning in the count": Lie(
        recorded(
            PIECES,
            [STOP, counted(completion_tokens=520, completion_tokens_details={"reasoning_tokens": 500}), DONE],
        ),
        # The limit of 20 holds reasoning, too; 520 cannot have been written under it.
        ("hidden_reasoning", "multi_token_chunks", "usage_inconsistent"),
        tpot=False,
    ),
    "a running count": Lie(recorded(running(lambda place: place), END), ()),
    "a running count that starts again": Lie(
        recorded(running(lambda _: 1), [STOP, DONE]), ("split_tokens", "usage_inconsistent"), tpot=False
    ),
    "a running count that shrinks": Lie(
        recorded(running(lambda place: 21 - place), [chat({}, "stop"), usage_of(TOKENS), DONE]),
        ("usage_inconsistent",),
        tpot=False,
    ),
    "a running count that shrinks, and a last one that the limit bears out": Lie(
        recorded(running(lambda place: 21 - place), [STOP, usage_of(TOKENS), DONE]), ("usage_jumps",)
    ),
    "cumulative text": Lie(recorded(growing(), END), ("cumulative_text",)),
    "every chunk twice": Lie(recorded([piece + piece for piece in PIECES], END), ("burst", "split_tokens")),
    "chat answers completions": Lie(recorded(PIECES, END, endpoint="completions"), ("foreign_chunks",)),
    "completions answer chat": Lie(
        recorded([text(word) for word in WORDS], [text("", "length"), usage_of(TOKENS), DONE]), ("foreign_chunks",)
    ),
    "a ping of Anthropic's in between": Lie(
        recorded([event({"type": "message_start", "message": {}}) + PIECES[0], *PIECES[1:]], END), ("foreign_chunks",)
    ),
    "another content type": Lie(recorded(PIECES, END, content_type="application/json"), ("wrong_content_type",)),
    "a page's content type": Lie(recorded(PIECES, END, content_type="text/html"), ("wrong_content_type",)),
    "no finish reason": Lie(recorded(PIECES, [usage_of(TOKENS), DONE]), ("no_finish_reason",)),
    "no end mark": Lie(recorded(PIECES, [STOP, usage_of(TOKENS)]), ("no_done",)),
    "nonsense in between": Lie(recorded([*PIECES[:-1], "data: {oops\n\n" + PIECES[-1]], END), ("malformed_event",)),
}


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_measured_is_the_truth(name: str) -> None:
    """The flags say what is odd, and no time is given that is not so."""
    lie = MEASURED[name]
    line = decode(lie.recording)
    assert line.status == "ok"
    assert line.flags == lie.flags
    assert falsehoods(line) == []
    assert isinstance(time_per_output_token(line), float) == lie.tpot
    assert time_to_first_token(line) == pytest.approx(FIRST)


def test_an_unproven_count_is_an_estimate_under_its_own_name() -> None:
    """And never the count itself."""
    line = decode(MEASURED["no count"].recording)
    assert (line.output_tokens, line.token_source, line.output_tokens_estimate) == (None, None, TOKENS)


def test_a_believed_lie_would_be_seen() -> None:
    """Shown failing: the check of the times finds a count that nothing contradicts, twice the truth."""
    unlimited = recorded(PIECES, [STOP, usage_of(2 * TOKENS), DONE])
    fooled = decode(Recording(**{**_fields(unlimited), "expected": Expected()}))
    assert fooled.flags == ("multi_token_chunks",)
    assert [word.split()[0] for word in falsehoods(fooled)] == ["tpot"]


def _fields(recording: Recording) -> dict[str, Any]:
    return {name: getattr(recording, name) for name in Recording.__dataclass_fields__}


def test_twice_the_tokens_where_a_length_was_forced_is_off() -> None:
    """Also where the limit would allow it."""
    recording = recorded(PIECES, [STOP, usage_of(TOKENS + 4), DONE])
    forced = Expected(max_tokens=TOKENS, output_tokens=TOKENS)
    assert "osl_mismatch" in decode(Recording(**{**_fields(recording), "expected": forced})).flags


def messages(output_tokens: object) -> list[str]:
    """Anthropic's stream of the same tokens."""
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}
    delta = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": word}} for word in WORDS]
    end = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": output_tokens}}
    return [event(start) + event(delta[0]), *map(event, delta[1:]), event(end), event({"type": "message_stop"})]


@pytest.mark.parametrize(
    ("tokens", "flags", "tpot"),
    [
        (TOKENS, (), True),
        (10 * TOKENS, ("multi_token_chunks", "usage_inconsistent"), False),
        (2 * TOKENS, ("multi_token_chunks", "usage_inconsistent"), False),
        (TOKENS // 2, ("split_tokens", "usage_inconsistent"), False),
        (2, ("split_tokens", "usage_inconsistent"), False),
        (0, ("usage_inconsistent",), False),
        (None, ("usage_missing",), False),
    ],
)
def test_messages_lie_no_better(tokens: object, flags: tuple[str, ...], tpot: bool) -> None:
    """The same rules hold for Anthropic's own stream."""
    bodies = messages(tokens)
    line = decode(recorded(bodies[:TOKENS], bodies[TOKENS:], endpoint="messages"))
    assert (line.status, line.flags) == ("ok", flags)
    assert falsehoods(line) == []
    assert isinstance(time_per_output_token(line), float) == tpot


def lines(payloads: Sequence[object]) -> list[str]:
    """Newline-delimited JSON."""
    return [json.dumps(payload) + "\n" for payload in payloads]


OLLAMA = [{"message": {"role": "assistant", "content": word}, "done": False} for word in WORDS]
WHOLE = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "".join(WORDS)}}]}

REFUSED: dict[str, tuple[Recording, str, str]] = {
    "Anthropic's events from chat": (recorded(messages(TOKENS)), "wrong_dialect", "Anthropic's Messages"),
    "Anthropic's events from completions": (
        recorded(messages(TOKENS), endpoint="completions"), "wrong_dialect", "Anthropic's Messages",
    ),
    "chat chunks from messages": (
        recorded(PIECES, END, endpoint="messages"), "wrong_dialect", "OpenAI's chat completions",
    ),
    "completions chunks from messages": (
        recorded([text(word) for word in WORDS], [DONE], endpoint="messages"), "wrong_dialect", "OpenAI's completions",
    ),
    "OpenAI's Responses": (
        recorded([event({"type": "response.output_text.delta", "delta": word}) for word in WORDS]),
        "wrong_dialect", "OpenAI's Responses",
    ),
    "Gemini's own": (
        recorded([event({"candidates": [{"content": {"parts": [{"text": word}]}}]}) for word in WORDS]),
        "wrong_dialect", "Gemini's generateContent",
    ),
    "TGI's own": (
        recorded([event({"index": 1, "token": {"text": word}, "generated_text": None}) for word in WORDS]),
        "wrong_dialect", "TGI's own generate_stream",
    ),
    "SGLang's own": (
        recorded([event({"text": word, "meta_info": {"completion_tokens": 1}}) for word in WORDS], [DONE]),
        "wrong_dialect", "SGLang's own generate",
    ),
    "llama.cpp's own": (
        recorded([event({"content": word, "stop": False}) for word in WORDS]),
        "wrong_dialect", "llama.cpp's own completion",
    ),
    "Ollama's lines": (
        recorded(lines(OLLAMA), content_type="application/x-ndjson"), "wrong_dialect", "Ollama's own API",
    ),
    "chat chunks as lines": (
        recorded([piece.removeprefix("data: ").replace("\n\n", "\n") for piece in PIECES]),
        "wrong_dialect", "lines of JSON of OpenAI's chat completions",
    ),
    "one JSON body": (
        recorded([json.dumps(WHOLE)], content_type="application/json"), "not_streaming", "one JSON body",
    ),
    "an error as one JSON body": (
        recorded([json.dumps({"error": {"message": "no"}})], content_type="application/json"), "stream_error", "no",
    ),
    "a page": (recorded(["<html>sign in</html>"], content_type="text/html"), "protocol", "text/html"),
    "words": (recorded(["hello there"], content_type="text/plain"), "protocol", "text/plain"),
    "nothing": (recorded([""]), "truncated", "the body was empty"),
    "no end at all": (recorded(PIECES), "truncated", "without a finish_reason"),
    "[DONE] before the answer": (recorded([DONE + PIECES[0], *PIECES[1:]], END), "truncated", "[DONE] came without"),
    "text under another name": (
        recorded([event({"object": "chat.completion.chunk", "text_delta": word}) for word in WORDS]),
        "truncated", "after 20 token events",
    ),
    "half of it Anthropic's": (recorded([*PIECES[:10], *messages(TOKENS)[10:]]), "truncated", "after 10 token events"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_measured_is_refused_by_name(name: str) -> None:
    """One line that says what came, and no sample."""
    recording, kind, words = REFUSED[name]
    line = decode(recording)
    assert (line.status, line.error_kind) == ("error", kind)
    assert line.error_message is not None
    assert words in line.error_message
    assert "\n" not in line.error_message
    assert not line.sample_valid
    assert isinstance(time_per_output_token(line), Undefined)


def test_an_answer_without_a_token_is_empty_whatever_it_counts() -> None:
    """Twenty tokens that nobody saw are no time."""
    line = decode(recorded([chat({"role": "assistant"})], [STOP, usage_of(TOKENS), DONE]))
    assert (line.status, line.sample_valid) == ("empty", False)
    assert isinstance(time_to_first_token(line), Undefined)
    assert isinstance(time_per_output_token(line), Undefined)
