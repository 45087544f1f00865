"""Reasoning that is counted: whether the stream shows that it was hidden, or that it came as text like any other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from phasegate.core.metric import Undefined, streamed_tokens, time_per_output_token
from phasegate.core.timeline import Timeline
from phasegate.wire.count_words import disproof_words
from tests.wire.streams import DONE, STOP, line_of, said, usage


def answer(texts: Sequence[str], counted: int, reasoning: int, **more: int) -> Timeline:
    """One text an event, one event each 4 ms or so, and a count of which some is reasoning."""
    details = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return line_of(*map(said, texts), STOP, usage(counted, **details, **more), DONE)


def words(count: int) -> list[str]:
    """Texts that begin a word each."""
    return [f" w{place}" for place in range(count)]


@pytest.mark.parametrize(
    ("texts", "counted", "reasoning", "streamed"),
    [
        (words(48), 48, 24, 48),  # all of it was shown
        (words(48), 48, 48, 48),
        (words(3), 3, 2, 3),
        ([" a b c d"] * 12, 48, 24, 48),  # in chunks of four words
        (["\u597d"] * 48, 48, 24, 48),  # no spaces, but as many events as the whole count
        (words(24), 48, 24, 24),  # half of it was hidden
        (words(26), 48, 24, 24),  # marks around the reasoning may be counted with it
        (words(1), 65, 64, 1),
        ([" w", "o", "r", "d"] * 12, 60, 48, 12),  # a word in four events is one token
        (["\u597d"] * 36, 48, 36, 12),  # no spaces: characters of a token one by one, far from the whole count
    ],
)
def test_reasoning_is_hidden_unless_the_text_must_hold_it(
    texts: list[str], counted: int, reasoning: int, streamed: int
) -> None:
    """Only what was not streamed is subtracted."""
    line = answer(texts, counted, reasoning)
    assert streamed_tokens(line) == streamed
    assert ("hidden_reasoning" in line.flags) == (streamed != counted)
    assert ("reasoning_as_text" in line.flags) == (streamed == counted)


def test_text_that_repeats_itself_proves_nothing() -> None:
    """Chunks that hold the whole text so far are many words, and few tokens."""
    texts = [" ".join(words(place + 1)) for place in range(12)]
    assert streamed_tokens(answer(texts, 48, 36)) == 12


def test_more_reasoning_than_tokens_is_named_as_what_it_is() -> None:
    """A contradiction, not an answer of -96 tokens."""
    line = answer(words(48), 48, 144)
    tpot = time_per_output_token(line)
    assert isinstance(tpot, Undefined)
    assert tpot.reason == "the server counts 144 reasoning tokens among 48 output tokens, which cannot be"
    assert str(disproof_words([line])).startswith("usage counts 144 reasoning tokens among 48 output tokens (1 of 1")


def test_reasoning_that_is_counted_beside_the_answer_stays_hidden() -> None:
    """The total gives it away; the count is refused, and no proof is sought in it."""
    line = answer(words(20), 20, 100, prompt_tokens=9, total_tokens=129)
    assert line.flags == ("hidden_reasoning", "usage_inconsistent")
