"""Whatever comes over the wire: decoding never raises, and never yields a number that nobody sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.timeline import Ending, Expected, Read, Recording, Timeline
from phasegate.wire.messages import LONGEST
from phasegate.wire.numbers import LARGEST_COUNT
from phasegate.wire.openai_stream import ERROR_KINDS, FLAGS, decode
from tests.wire.captures import CAPTURES
from tests.wire.cases import CASES, recording_of
from tests.wire.streams import DONE, STOP, event, line_of, recorded, said, usage

ENDINGS = st.sampled_from(list(Ending))
STATUSES = st.sampled_from([None, 200, 200, 200, 204, 400, 500])
TYPES = st.sampled_from([None, "text/event-stream", "application/json", "text/html", "\udcff;;"])


def problems(line: Timeline) -> list[str]:
    """What cannot be true of any timeline, in one word each."""
    counts = [
        line.output_tokens,
        line.output_tokens_estimate,
        line.prompt_tokens,
        line.cached_tokens,
        line.reasoning_tokens,
        *(item.tokens for item in line.tokens),
    ]
    moments = [item.at for item in line.tokens]
    rules: dict[str, bool] = {
        "count": all(value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT) for value in counts),
        "source": (line.output_tokens is None) == (line.token_source is None),
        "order": moments == sorted(moments),
        "text": all(item.text for item in line.tokens),
        "flags": set(line.flags) <= set(FLAGS) and list(line.flags) == sorted(set(line.flags)),
        "status": line.status in ("ok", "error", "empty"),
        "kind": (line.status == "error") == (line.error_kind is not None),
        "worded": line.status == "empty" or (line.status == "error") == (line.error_message is not None),
        "vocabulary": line.error_kind is None or line.error_kind in ERROR_KINDS or line.error_kind.startswith("http_"),
        "message": line.error_message is None
        or (line.error_message.isprintable() and 0 < len(line.error_message) <= LONGEST),
        "sample": line.status == "ok" or not line.sample_valid,
        "tokens": bool(line.tokens) or line.status != "ok",
    }
    return [name for name, holds in rules.items() if not holds] + _unwritable(line)


def _unwritable(line: Timeline) -> list[str]:
    """A timeline must go into a JSON file in UTF-8."""
    words = [line.text, line.reasoning_text, line.tool_text, line.model, line.finish_reason, line.error_message]
    words.append(line.count_problem)
    try:
        json.dumps([words, dict(line.server_timings or {})], ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return ["unwritable"]
    return []


def _known(name: str) -> Recording:
    return CAPTURES[name].recording() if name in CAPTURES else recording_of(CASES[name])


@given(bodies=st.lists(st.binary(max_size=200), max_size=8), status=STATUSES, content_type=TYPES, ending=ENDINGS)
@settings(max_examples=200, deadline=None)
def test_random_bytes_never_raise(
    bodies: list[bytes], status: int | None, content_type: str | None, ending: Ending
) -> None:
    """Any bytes, any status, any ending."""
    assert problems(line_of(*bodies, status=status, content_type=content_type, ending=ending)) == []


WORDS = b'data: |data:|event: error|:|{}|[DONE]|]}|"|{"choices":[|{"delta":{"content":"a"}}|{"error":'
SCRAPS = st.sampled_from([*WORDS.split(b"|"), b"\n", b"\r", b"\r\n", b"\n\n", b"\xff", b"\xef\xbb\xbf"])


@given(lines=st.lists(SCRAPS, max_size=40), ending=ENDINGS)
@settings(max_examples=300, deadline=None)
def test_random_pieces_of_streams_never_raise(lines: list[bytes], ending: Ending) -> None:
    """Bytes that come closer to a stream than chance does."""
    assert problems(line_of(b"".join(lines), ending=ending)) == []


@given(name=st.sampled_from(sorted({**CAPTURES, **CASES})), data=st.data())
@settings(max_examples=300, deadline=None)
def test_mutated_streams_never_raise(name: str, data: st.DataObject) -> None:
    """Real bytes with pieces cut out, doubled, overwritten or exchanged."""
    recording = _known(name)
    body = bytearray(b"".join(read.data for read in recording.reads))
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(len(body), start + 80)))
        noise = data.draw(st.one_of(st.just(bytes(body[start:end]) * 2), st.binary(max_size=6), st.just(b"\n\n")))
        body[start:end] = noise
    mutated = replace(
        recording, reads=(Read(1.0, bytes(body)),), ending=data.draw(ENDINGS), http_status=data.draw(STATUSES)
    )
    assert problems(decode(mutated)) == []


KEYS = st.sampled_from(
    "choices delta message text content reasoning reasoning_content reasoning_details refusal tool_calls function name "
    "arguments function_call custom input index finish_reason logprobs tokens usage completion_tokens prompt_tokens "
    "total_tokens cached_tokens prompt_tokens_details completion_tokens_details reasoning_tokens x_groq error detail "
    "code param type object model timings cache_n predicted_n thinking loc msg".split()
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([10**400, -(10**400), 2**63, 1e308, float("nan"), float("inf"), -0.0, 0.5]),
    st.sampled_from(["", "a", " ", "\ud83d", "\x00", "error", "text", "thinking", "3"]),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.one_of(JSON, st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=3)),
        "usage": st.one_of(JSON, st.dictionaries(KEYS, SCALARS, max_size=6)),
        "timings": JSON,
        "error": JSON,
        "model": JSON,
        "x_groq": JSON,
    },
)


@given(chunks=st.lists(CHUNKS, max_size=5), finished=st.booleans())
@settings(max_examples=200, deadline=None)
def test_absurd_json_never_raises(chunks: list[dict[str, Any]], finished: bool) -> None:
    """Known keys with values of every type, in every place."""
    tail = [STOP, DONE] if finished else []
    assert problems(line_of(*map(event, chunks), *tail)) == []


@given(payload=st.dictionaries(KEYS, JSON, max_size=4), status=st.sampled_from([200, 400]))
@settings(max_examples=100, deadline=None)
def test_an_absurd_json_body_never_raises(payload: dict[str, Any], status: int) -> None:
    """As an error page and as an answer that was not streamed."""
    assert problems(line_of(json.dumps(payload), status=status, content_type="application/json")) == []


@pytest.mark.parametrize(
    "payload",
    [
        "[" * 200_000,
        '{"choices":' * 50_000,
        '{"usage":{"completion_tokens":' + "9" * 5000 + "}}",
        '{"usage":{"completion_tokens":' + "9" * 4000 + "}}",
        '{"timings":{"cache_n":' + "9" * 4000 + ',"prompt_ms":NaN}}',
        '{"choices":[{"index":-1,"delta":{"content":"a"}}]}',
        '{"choices":[{"index":true,"delta":{"content":"a"}}]}',
        '{"choices":[{"index":1e400,"delta":{"content":"a"}}]}',
        '{"choices":[{"delta":{"content":"\\ud83d"}}]}',
    ],
)
@pytest.mark.parametrize("status", [200, 500])
def test_json_at_the_limits_never_raises(payload: str, status: int) -> None:
    """Deep nesting, numbers of thousands of digits, halves of characters; in an event and as a body."""
    assert problems(line_of(f"data: {payload}\n\n", said("b"), STOP, usage(2), DONE, status=status)) == []
    assert problems(line_of(payload, status=status, content_type="application/json")) == []


def test_a_character_in_two_halves_stays_writable() -> None:
    """JSON escapes of one half each are no text that a file can hold; the tokens still count."""
    line = line_of(said("\ud83d"), said("\ude42"), STOP, usage(2), DONE)
    assert (line.text, len(line.tokens)) == ("\ufffd\ufffd", 2)


def test_an_answer_of_one_long_line_in_small_reads_is_decoded_in_linear_time() -> None:
    """A megabyte without a line end in 16-byte reads; quadratic work would take minutes."""
    text = "x" * 1_000_000
    body = said(text).encode()
    pieces = [body[place : place + 16] for place in range(0, len(body), 16)]
    assert decode(recorded([*pieces, STOP, usage(1), DONE])).text == text


BROKEN: dict[str, Callable[[Timeline], Timeline]] = {
    "count": lambda line: replace(line, output_tokens=-1),
    "order": lambda line: replace(line, tokens=line.tokens[::-1]),
    "text": lambda line: replace(line, tokens=(replace(line.tokens[0], text=""), *line.tokens[1:])),
    "flags": lambda line: replace(line, flags=("no such flag",)),
    "kind": lambda line: replace(line, error_kind="truncated"),
    "worded": lambda line: replace(line, error_message="x"),
    "vocabulary": lambda line: replace(line, status="error", error_kind="odd", error_message="x", sample_valid=False),
    "message": lambda line: replace(line, error_message="a\nb"),
    "sample": lambda line: replace(line, status="empty"),
    "tokens": lambda line: replace(line, tokens=()),
    "unwritable": lambda line: replace(line, model="\ud800"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_each_rule_sees_its_breach(name: str) -> None:
    """Shown failing: a sound timeline, broken in one place."""
    sound = line_of(said("a"), said("b"), STOP, usage(2), DONE, expected=Expected())
    assert problems(sound) == []
    assert name in problems(BROKEN[name](sound))
