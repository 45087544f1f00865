"""What is said about token counts: what is disproved, what is only odd, and nothing about counts that stand."""

from __future__ import annotations

from dataclasses import replace

from phasegate.core.timeline import Expected, Timeline
from phasegate.wire.count_words import UNBELIEVED, disproof_words, doubts
from phasegate.wire.openai_stream import decode
from tests.timelines import failed
from tests.wire.streams import DONE, chat, recorded, said, usage


def answer(text: str, events: int, counted: int, finish: str = "length", forced: int | None = 20) -> Timeline:
    """An answer with a limit of twenty tokens."""
    bodies = [*[said(text)] * events, chat({}, finish=finish), usage(counted), DONE]
    return decode(recorded(bodies, expected=Expected(max_tokens=20, output_tokens=forced)))


def test_counts_that_stand_are_passed_over_in_silence() -> None:
    lines = [answer("ab", 20, 20), answer(" ab", 40, 20), answer("ab", 10, 20), failed()]
    assert disproof_words(lines) is None
    assert doubts(lines) == []


def test_the_limit_is_named_where_it_is_what_disproves() -> None:
    lines = [answer("ab", 20, 10), answer("ab", 20, 20), failed()]
    said_ = "usage counts 10 tokens where the answer ended at its limit of 20 (1 of 2 answers): "
    assert disproof_words(lines) == said_ + UNBELIEVED
    assert doubts(lines) == []


def test_the_events_are_named_where_nothing_else_disproves() -> None:
    line = answer(" ab", 20, 10, "stop", None)
    assert (disproof_words([line]) or "").startswith("usage counts 10 tokens where 20 token events came (1 of 1")


def test_an_answer_cut_below_its_limit_is_odd() -> None:
    """By the context, or it counts wrong: one line, and not a second one for the forced length."""
    (said_,) = doubts([answer("ab", 10, 10)])
    assert said_.startswith("1 answer ended at the limit by the server's word, with another number")
    assert "such as 10 of 20" in said_


def test_an_answer_shorter_than_forced_is_odd() -> None:
    assert doubts([answer("ab", 5, 5, "stop")] * 2) == ["2 answers of another length than was forced, such as 5 of 20"]


def test_split_tokens_are_the_servers_word() -> None:
    """Said where nothing bears the count out."""
    (said_,) = doubts([answer("ab", 12, 6, "stop", None)])
    assert said_.startswith("1 answer with fewer tokens counted than token events came, such as 6 of 12; TPOT takes")


def test_nothing_is_said_of_failed_requests() -> None:
    line = answer("ab", 20, 10)
    assert disproof_words([replace(line, status="error")]) is None
