"""A gateway's own name for the thoughts, arguments that come again: what `phasegate probe` makes of such a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.edges.quick_pytest import QuickPytest
from tests.loopback import SSE, Answer, Loopback

TOLERANCE = 0.06
"""Seconds that a busy machine may add to a moment."""


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    """One chunk of chat."""
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def stream(timed: Sequence[tuple[float, dict[str, Any]]], tokens: int, reason: str = "stop") -> Answer:
    """Chunks at their moments, and with the last one the end and the count."""
    counts = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}
    end = [chunk({}, reason), {"object": "chat.completion.chunk", "choices": [], "usage": counts}]
    last = timed[-1][0]
    pieces = [(at, _event(one)) for at, one in timed] + [(last, b"".join(map(_event, end)) + b"data: [DONE]\n\n")]
    return Answer(pieces=pieces, headers=SSE)


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def probed(quick: QuickPytest, answer: Answer, *options: str) -> str:
    """What the command prints of one request."""
    with Loopback(answer) as server:
        arguments = ("--base-url", server.base_url, "--model", "m", "--prompt", "hello", "--max-tokens", "64")
        done = quick.phasegate("probe", *arguments, *options)
    assert done.status == 0, done.output
    return done.output


THOUGHT = [(0.1 + 0.05 * place, {"role": "assistant", "content": None}) for place in range(8)]
SAID = [(0.9, {"content": "yes"}), (0.94, {"content": " no"})]


@pytest.mark.parametrize(
    ("field", "flags"),
    [("reasoning_text", []), ("thinking", []), ("scratch", ["unnamed_text"]), ("x_thoughts", ["unnamed_text"])],
)
def test_thoughts_under_any_name_set_the_first_token(quick: QuickPytest, field: str, flags: list[str]) -> None:
    """C010: ten tokens, the first after 100 ms, the answer's after 900 ms."""
    thought = [(at, chunk({**delta, field: f" t{place}"})) for place, (at, delta) in enumerate(THOUGHT)]
    said = [(at, chunk(delta)) for at, delta in SAID]
    (one,) = json.loads(probed(quick, stream([*thought, *said], 10), "--json"))["requests"]
    assert one["time_to_first_token"] == pytest.approx(0.1, abs=TOLERANCE)
    assert one["time_to_first_output_token"] == pytest.approx(0.9, abs=TOLERANCE)
    assert one["time_per_output_token"] == pytest.approx(0.84 / 9, abs=TOLERANCE / 9)
    assert (one["output_tokens"], one["sample_valid"], one["flags"]) == (10, True, flags)
    assert one["unnamed_fields"] == ([f"delta.{field}"] if flags else [])
    assert one["unnamed_text"] == (" t0 t1 t2 t3 t4 t5 t6 t7" if flags else "")


def test_a_reader_is_told_which_field(quick: QuickPytest) -> None:
    """C010: a remark beside the picture."""
    timed = [(0.02, chunk({"scratch": " a b"})), (0.05, chunk({"content": "yes"}))]
    assert "note: unnamed_text: Text came in a field that is not understood" in (
        text := probed(quick, stream(timed, 4))
    )
    assert "(delta.scratch)" in text


@pytest.mark.parametrize("resent", ["growing", "whole"])
def test_arguments_that_come_again(quick: QuickPytest, resent: str) -> None:
    """C013: five chunks, each with all of the call's arguments so far."""
    parts = ['{"t', '{"town', '{"town": ', '{"town": "Ul', '{"town": "Ulm"}']
    written = parts if resent == "growing" else [parts[-1]] * 5
    calls = [chunk({"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": one}}]}) for one in written]
    timed = [(0.1 + 0.04 * place, call) for place, call in enumerate(calls)]
    (one,) = json.loads(probed(quick, stream(timed, 5, "tool_calls"), "--json"))["requests"]
    assert "cumulative_text" in one["flags"]
    assert one["output_tokens"] == 5
    assert one["time_per_output_token"] == pytest.approx(0.04, abs=TOLERANCE / 4)


SAYINGS = {
    "status of the delta": {"status_text": "looking for a machine"},
    "questions of a search": {"search_queries": ["how tall is it", "what is it"]},
    "echo of the prompt": {"prompt": "tell me a joke please"},
}


@pytest.mark.parametrize(
    ("said", "times"), [*((one, 1) for one in SAYINGS.values()), (SAYINGS["status of the delta"], 3)]
)
def test_sentences_that_the_count_has_no_room_for_are_no_tokens(
    quick: QuickPytest, said: dict[str, Any], times: int
) -> None:
    """C010: eight tokens are counted and eight came under a known name; what a gateway says before them is remarked."""
    before = [(0.05 + 0.02 * place, chunk(said)) for place in range(times)]
    words = [(0.3 + 0.04 * place, chunk({"content": f" w{place}"})) for place in range(8)]
    (one,) = json.loads(probed(quick, stream([*before, *words], 8), "--json"))["requests"]
    assert one["time_to_first_token"] == pytest.approx(0.3, abs=TOLERANCE)
    assert one["time_per_output_token"] == pytest.approx(0.04, abs=TOLERANCE / 7)
    assert (one["sample_valid"], one["unnamed_text"], "unnamed_text" in one["flags"]) == (True, "", True)


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
def test_an_answer_that_comes_whole_once_more_is_no_further_token(quick: QuickPytest, field: str) -> None:
    """C013: the last chunk repeats all of the text, 200 ms behind the last token."""
    words = [f" w{place}" for place in range(8)]
    timed = [(0.1 + 0.04 * place, chunk({field: word})) for place, word in enumerate(words)]
    (one,) = json.loads(probed(quick, stream([*timed, (0.58, chunk({field: "".join(words)}))], 8), "--json"))[
        "requests"
    ]
    assert one["time_per_output_token"] == pytest.approx(0.04, abs=TOLERANCE / 7)
    assert one["text"] + one["reasoning_text"] == "".join(words)


def test_arguments_that_grow_as_objects(quick: QuickPytest) -> None:
    """C013: each chunk has the call's arguments so far, as a value and not as text."""
    calls = [
        chunk({"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": {"town": "Ulm"[: place + 1]}}}]})
        for place in range(3)
    ]
    timed = [(0.1 + 0.04 * place, call) for place, call in enumerate(calls)]
    (one,) = json.loads(probed(quick, stream(timed, 3, "tool_calls"), "--json"))["requests"]
    assert "cumulative_text" in one["flags"]
    assert one["time_per_output_token"] == pytest.approx(0.04, abs=TOLERANCE / 2)


SHAPES = {
    "delta as a list": lambda text: {"choices": [{"index": 0, "delta": [{"content": text}]}]},
    "choices as an object": lambda text: {"choices": {"index": 0, "delta": {"content": text}}},
    "content beside its transcript": lambda text: chunk({"content": text, "audio": {"transcript": text}}),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_text_in_other_shapes_is_read(quick: QuickPytest, shape: Callable[[str], dict[str, Any]]) -> None:
    """C010: and read once."""
    timed = [(0.1 + 0.04 * place, shape(f" w{place}")) for place in range(4)]
    (one,) = json.loads(probed(quick, stream(timed, 4), "--json"))["requests"]
    assert one["text"] + one["unnamed_text"] == " w0 w1 w2 w3"
    assert one["time_per_output_token"] == pytest.approx(0.04, abs=TOLERANCE / 3)
