"""Text that a server sends again: the joined text is not the answer, and the moments and counts are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from phasegate.core.metric import time_per_output_token
from phasegate.core.timeline import Timeline
from tests.wire.streams import DONE, STOP, chat, line_of, usage

GROWING = ['{"t', '{"town', '{"town": ', '{"town": "Ul', '{"town": "Ulm"}']


def called(arguments: Sequence[object], *, name: str | None = "look", index: int | None = 0) -> Timeline:
    """A call, one piece of its arguments a second; the name on every piece, or on the first one only."""
    deltas = [
        {"tool_calls": [_call(written, name if name or not place else None, index)]}
        for place, written in enumerate(arguments)
    ]
    return line_of(*map(chat, deltas), STOP, usage(len(arguments)), DONE)


def _call(written: object, name: str | None, index: int | None) -> dict[str, Any]:
    function = {"arguments": written, **({} if name is None else {"name": name})}
    return {"function": function, **({} if index is None else {"index": index})}


def chunked_prefill(text: str) -> list[str]:
    """Three characters each."""
    return [text[place : place + 3] for place in range(0, len(text), 3)]


@pytest.mark.parametrize("name", ["look", None])
@pytest.mark.parametrize(
    "arguments",
    [
        GROWING,
        GROWING[:3],  # cut by the limit
        [GROWING[0], GROWING[-1]],
        [GROWING[-1]] * 4,  # whole each time
        [*chunked_prefill(GROWING[-1]), GROWING[-1]],  # in pieces, and whole once more at the end
        [{"town": "Ulm"}] * 3,  # as an object each time
    ],
)
def test_arguments_that_come_again_are_flagged(arguments: Sequence[object], name: str | None) -> None:
    """C013 and its kind: the server's count stays, and so does TPOT."""
    line = called(arguments, name=name)
    assert (line.flags, line.output_tokens) == (("cumulative_text",), len(arguments))
    assert time_per_output_token(line) == 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        chunked_prefill(GROWING[-1]),
        chunked_prefill(json.dumps({"a": {"a": {"a": 1}}})),
        ["{", '"a": "', "{", "{", '"}'],
        ["{}"],
        ["", "{}", ""],
    ],
)
def test_arguments_in_pieces_are_not(arguments: Sequence[str]) -> None:
    """However much a piece looks like the one before it."""
    assert "cumulative_text" not in called(arguments).flags


def test_two_calls_are_two() -> None:
    """Side by side, one after the other, and without a number each."""
    both = [{"tool_calls": [_call('{"a": 1}', "f", 0), _call('{"b": 2}', "g", 1)]}]
    assert line_of(*map(chat, both), STOP, usage(9), DONE).flags == ("multi_token_chunks",)
    one_by_one = [{"tool_calls": [_call(written, "f", None)]} for written in ('{"a": 1}', '{"b": 2}')]
    assert line_of(*map(chat, one_by_one), STOP, usage(2), DONE).flags == ()


def test_each_call_is_looked_at_for_itself() -> None:
    """The second one begins anew and grows; the first came in pieces."""
    pieces = [chat({"tool_calls": [_call(written, "f", 0)]}) for written in chunked_prefill(GROWING[-1])]
    grown = [chat({"tool_calls": [_call(written, "g", 1)]}) for written in GROWING]
    line = line_of(*pieces, *grown, STOP, usage(len(pieces) + len(grown)), DONE)
    assert line.flags == ("cumulative_text",)


@pytest.mark.parametrize("field", ["reasoning_content", "scratch", "content"])
def test_thoughts_that_grow_are_flagged_too(field: str) -> None:
    """In any channel; an unchanged one in between is no contradiction."""
    texts = ["so ", "so we ", "so we ", "so we go "]
    line = line_of(*(chat({field: text}) for text in texts), STOP, usage(4), DONE)
    assert "cumulative_text" in line.flags
    assert time_per_output_token(line) == 1.0
