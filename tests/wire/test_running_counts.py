"""A count that runs along with the text while a parser holds tokens back: its last value decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from phasegate.core.metric import Undefined, time_per_output_token
from phasegate.core.timeline import Expected, Timeline
from tests.wire.streams import DONE, chat, line_of, said, usage


def running(
    texts: Sequence[str], counts: Sequence[int], last: int | None, end: str = "stop", limit: int | None = None
) -> Timeline:
    """One text a second with the count so far, an end, and the report that closes the answer."""
    bodies = [said(text, usage={"completion_tokens": count}) for text, count in zip(texts, counts, strict=True)]
    closing = [] if last is None else [usage(last)]
    return line_of(*bodies, chat({}, finish=end), *closing, DONE, expected=Expected(max_tokens=limit))


WORDS = [f" w{place}" for place in range(9)]

HELD = [1, 2, 3, 4, 64, 65, 66, 67, 68]
"""Sixty tokens of marks and a call that the parser swallowed, all before the fifth text."""

BACK = [1, 2, 3, 9, 5, 6, 7, 8, 9]
"""The parser had five more tokens in its hands, and the count took them back."""


@pytest.mark.parametrize(
    ("counts", "last", "end", "limit"),
    [
        (HELD, 68, "stop", None),  # the report that closes the answer says the same
        (HELD, 68, "stop", 500),
        (HELD, None, "length", 68),  # the limit does
        (HELD, 68, "length", 68),
        (BACK, 9, "stop", None),
        (BACK, None, "length", 9),
        ([1, 2, 3, 4, 5, 6, 7, 30, 8], 9, "length", 9),
    ],
)
def test_a_count_that_jumps_is_believed_where_the_last_one_agrees_with_the_end(
    counts: list[int], last: int | None, end: str, limit: int | None
) -> None:
    """TPOT is defined, and the answer says how its count ran."""
    line = running(WORDS, counts, last, end, limit)
    assert "usage_jumps" in line.flags
    assert "usage_inconsistent" not in line.flags
    told = last or counts[-1]
    assert line.output_tokens == told
    assert time_per_output_token(line) == pytest.approx(8 / (told - 1))


@pytest.mark.parametrize(
    ("counts", "last", "end", "limit"),
    [
        (HELD, None, "stop", None),  # nothing says that the last one is right
        (HELD, 100, "stop", None),  # another count closes the answer
        (HELD, 68, "stop", 20),  # more than was allowed
        (BACK, None, "stop", None),
        (BACK, 7, "stop", None),
        ([61, *range(62, 70)], 69, "stop", None),  # swallowed before the first text: a part of TTFT
        (list(range(1, 10)), 69, "length", 69),  # swallowed behind the last one: in no span
        ([10 * place for place in range(1, 10)], 90, "stop", None),  # wrong in every event
        ([1, 1, 1, 1, 1, 1, 1, 1, 1], 1, "stop", None),
    ],
)
def test_a_count_that_nothing_bears_out_is_not(
    counts: list[int], last: int | None, end: str, limit: int | None
) -> None:
    """TPOT stays undefined."""
    line = running(WORDS, counts, last, end, limit)
    assert "usage_inconsistent" in line.flags
    assert "usage_jumps" not in line.flags
    assert isinstance(time_per_output_token(line), Undefined)


def test_a_count_that_goes_back_proves_nothing_of_single_events() -> None:
    """One that only runs ahead does."""
    assert {event.tokens for event in running(WORDS, BACK, 9).tokens} == {None}
    assert [event.tokens for event in running(WORDS, HELD, 68).tokens] == [1, 1, 1, 1, 60, 1, 1, 1, 1]


def test_an_ordinary_running_count_is_not_remarked() -> None:
    """Also where a parser held a few tokens back that then came."""
    assert running(WORDS, list(range(1, 10)), 9).flags == ()
    texts = [" w0", " w1", " w2 w3 w4 w5 w6 w7 w8"]
    assert running(texts, [1, 2, 9], 9).flags == ("multi_token_chunks",)
