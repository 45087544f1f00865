"""Which counts an answer disproves, and which it must not: both sides of every rule, at its edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from phasegate.core.timeline import Expected, Timeline
from phasegate.wire.disproof import LARGEST_SPLIT, allowance
from phasegate.wire.openai_stream import decode
from tests.wire.captures import CAPTURES
from tests.wire.streams import DONE, STOP, chat, line_of, said, usage

CUT = chat({}, finish="length")


def words(count: int) -> list[str]:
    """Texts that begin a word each."""
    return [f" w{place}" for place in range(count)]


def answer(
    texts: Sequence[str],
    counted: int,
    end: str = CUT,
    *,
    limit: int | None = None,
    forced: int | None = None,
    **more: int,
) -> Timeline:
    """One text an event, an end, and a count."""
    details = {"completion_tokens_details": {"reasoning_tokens": more["reasoning"]}} if more else {}
    bodies = [*map(said, texts), end, usage(counted, **details), DONE]
    return line_of(*bodies, expected=Expected(max_tokens=limit, output_tokens=forced))


def denied(line: Timeline) -> bool:
    """Whether the count was disproved."""
    return "usage_inconsistent" in line.flags


@pytest.mark.parametrize(
    ("events", "counted", "limit", "believed"),
    [
        (256, 128, 256, False),  # half of them
        (256, 64, 256, False),
        (240, 128, 256, False),  # some events hold two
        (256, 254, 256, False),
        (256, 255, 256, True),  # one too few, seen of a real server: 0.4 % of TPOT
        (256, 257, 256, True),
        (256, 258, 256, False),
        (20, 19, 20, False),  # one too few, but 5.6 % of TPOT
        (100, 100, 256, True),  # cut by the context
        (101, 100, 256, True),  # and one token in two events
        (512, 256, 256, True),  # every token in two events
        (128, 256, 256, True),  # two tokens in every event
        (64, 260, 256, True),  # the last guesses of a step reach beyond the limit
        (64, 261, 256, False),
        (257, 257, 256, True),  # the server writes one more than it was told
    ],
)
def test_an_answer_that_ended_for_its_length_has_the_limits_tokens(
    events: int, counted: int, limit: int, believed: bool
) -> None:
    """Where the events side with the limit against the count; chunks without spaces, so that no other rule speaks."""
    line = answer(["abcdefgh"] * events, counted, limit=limit)
    assert denied(line) is not believed
    assert ("limit_mismatch" in line.flags) is (believed and counted != limit)


@pytest.mark.parametrize(("events", "believed"), [(256, False), (250, False), (128, True), (140, True)])
def test_a_forced_length_needs_no_word_for_its_end(events: int, believed: bool) -> None:
    """As many events as were forced are the tokens; fewer are an answer that was not to be forced."""
    assert denied(answer(["ab"] * events, 128, STOP, limit=256, forced=256)) is not believed


def test_unseen_reasoning_is_a_part_of_the_limit() -> None:
    """Sixty tokens of it and forty that came are a hundred."""
    assert not denied(answer(["ab"] * 40, 100, limit=100, reasoning=60))
    assert denied(answer(["ab"] * 40, 70, limit=100, reasoning=60))


def test_an_answer_has_as_many_tokens_as_words() -> None:
    """Ten words in ten events are ten tokens at least, whatever ended the answer."""
    assert denied(answer(words(10), 9, STOP))
    assert not denied(answer(words(10), 10, STOP))
    assert denied(answer([f"w{place} " for place in range(10)], 9, STOP))


def test_letters_that_come_one_by_one_are_no_words() -> None:
    """A proxy that smooths the stream, four events a token; so are the bytes of a character."""
    letters = list(" abc def ghi")
    assert not denied(answer(letters, 3, STOP))
    assert not denied(answer(["日", "本", "語", "で", "す"], 2, STOP))
    assert LARGEST_SPLIT == 4


def test_a_count_that_the_limit_bears_out_is_believed_whatever_the_chunks_are() -> None:
    """Every chunk twice: twice the words, but the limit says how many tokens."""
    assert not denied(answer([text for text in words(10) for _ in range(2)], 10, limit=10))


def test_several_choices_share_a_limit_each() -> None:
    """No rule about one answer's limit speaks of two."""
    bodies = [said("ab", index=index) for index in (0, 1) for _ in range(10)]
    ends = [chat({}, finish="length", index=index) for index in (0, 1)]
    line = line_of(*bodies, *ends, usage(20), DONE, expected=Expected(max_tokens=10, choices=2))
    assert not {"usage_inconsistent", "limit_mismatch"} & set(line.flags)


def test_what_is_let_pass_moves_tpot_by_a_twentieth_at_most() -> None:
    for limit in range(2, 400):
        assert allowance(limit, 4) / (limit - 1) <= 0.05
    assert [allowance(20), allowance(21), allowance(400)] == [0, 1, 1]


ENDED = [name for name, one in CAPTURES.items() if decode(one.recording()).finish_reason == "length"]


@pytest.mark.parametrize("name", ENDED)
def test_no_count_of_a_real_engine_is_disproved(name: str) -> None:
    """Each of them counts exactly its limit."""
    line = decode(CAPTURES[name].recording())
    assert line.expected.max_tokens is not None
    assert not {"usage_inconsistent", "limit_mismatch"} & set(line.flags)


def test_half_of_a_real_engines_count_is_disproved() -> None:
    """Shown failing: the same streams with a count that their engines did not send."""
    halved = 0
    for name in ENDED:
        recording = CAPTURES[name].recording()
        tokens = decode(recording).output_tokens or 0
        true, lie = (b'"completion_tokens":%d' % count for count in (tokens, tokens // 2))
        reads = tuple(replace(read, data=read.data.replace(true, lie)) for read in recording.reads)
        if reads != recording.reads:
            assert denied(decode(replace(recording, reads=reads))), name
            halved += 1
    assert halved > 20
