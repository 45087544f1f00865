"""Bursts and chunks of speculative decoding: TPOT stays right, steps are told by moments, counts by the server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.core.metric import time_per_output_token
from phasegate.core.timeline import Channel, Timeline, TokenEvent
from phasegate.diagnose import Observations, diagnose
from phasegate.diagnose.from_runs import ask_of
from phasegate.diagnose.steps import Gaps, chunk_sizes, gaps_of, pace_of, steps_of
from tests.timelines import timeline

STEP = 0.04


def burst(steps: int, together: int, apart: float = 0.00005) -> Timeline:
    """A first token, then so many steps of several chunks each, which follow each other in microseconds."""
    moments = [100.1] + [100.1 + STEP * n + apart * k for n in range(1, steps + 1) for k in range(together)]
    events = tuple(TokenEvent(at, Channel.CONTENT, "w") for at in moments)
    return replace(timeline(), tokens=events, output_tokens=len(events))


def packed(steps: int, together: int) -> Timeline:
    """The same with one chunk a step, whose tokens the server proves."""
    events = [TokenEvent(100.1, Channel.CONTENT, "w", tokens=1)]
    events += [
        TokenEvent(100.1 + STEP * n, Channel.CONTENT, "w" * together, tokens=together) for n in range(1, steps + 1)
    ]
    return replace(timeline(), tokens=tuple(events), output_tokens=1 + steps * together)


@pytest.mark.parametrize("together", [1, 2, 4, 8])
def test_bursts_and_full_chunks_have_the_same_steps_and_the_same_tpot(together: int) -> None:
    """However tokens are packed, a step yields as many, and a token takes its share of the step."""
    for line in (burst(10, together), packed(10, together)):
        assert pace_of(line).tokens_per_step() == pytest.approx(together)
        assert time_per_output_token(line) == pytest.approx(STEP / together, rel=0.01)


def test_chunks_tell_how_full_they_are_where_the_server_proves_it() -> None:
    """And nothing where it does not."""
    assert chunk_sizes([packed(3, 4)]) == {1: 1, 4: 3}
    assert chunk_sizes([burst(3, 4)]) == {}


def test_uneven_single_tokens_are_not_taken_for_bursts() -> None:
    """Gaps between half and twice the usual one are steps of their own."""
    at, moments = 100.1, [100.1]
    for n in range(30):
        at += STEP * (0.5, 1.0, 2.0)[n % 3]
        moments.append(at)
    line = replace(timeline(), tokens=tuple(TokenEvent(one, Channel.CONTENT, "w") for one in moments), output_tokens=31)
    assert pace_of(line).tokens_per_step() == pytest.approx(1.0)


def test_acceptance_is_the_servers_count_over_all_answers() -> None:
    """Summed, not averaged; unknown where the server tells nothing."""
    told = [replace(burst(4, 2), server_timings={"draft_n": n, "draft_n_accepted": k}) for n, k in ((10, 9), (30, 3))]
    steps = steps_of(told)
    assert steps is not None
    assert (steps.drafted, steps.accepted, steps.acceptance) == (40, 12, 0.3)
    bare = steps_of([burst(4, 2)])
    assert bare is not None
    assert bare.acceptance is None


def mixed(sizes: tuple[int, ...]) -> Timeline:
    """A first token, then a chunk of each size, a step apart, whose tokens the server proves."""
    events = [
        TokenEvent(100.1 + STEP * n, Channel.CONTENT, "w" * size, tokens=size) for n, size in enumerate((1, *sizes))
    ]
    return replace(timeline(), tokens=tuple(events), output_tokens=1 + sum(sizes))


@pytest.mark.parametrize(
    ("line", "guessing"),
    [
        (mixed((5, 1, 3, 5, 2, 5, 4, 1)), True),
        (mixed((8, 8, 8, 8, 7)), False),
        (mixed((1, 1, 1, 1, 2, 1, 1, 1)), False),
        (burst(8, 4), False),
    ],
    ids=["guesses", "sent by eights", "merged now and then", "chunks at one moment"],
)
def test_guesses_are_seen_in_steps_of_proven_and_differing_sizes_only(line: Timeline, guessing: bool) -> None:
    """Whatever is put together on the way looks like several tokens a step as well; the server's count decides."""
    steps = steps_of([line])
    assert steps is not None
    assert steps.guessing is guessing
    counted = steps_of([replace(line, server_timings={"draft_n": 40, "draft_n_accepted": 20})])
    assert counted is not None
    assert counted.guessing


def test_a_pause_after_the_first_token_is_told_from_the_usual_gap() -> None:
    """The first gap apart from the others; answers too short for that say nothing."""
    moments = [100.1, 100.3, *(100.3 + 0.01 * n for n in range(1, 8))]
    line = replace(timeline(), tokens=tuple(TokenEvent(at, Channel.CONTENT, "w") for at in moments), output_tokens=9)
    found = gaps_of([line])
    assert found.second == pytest.approx(0.2)
    assert found.usual == pytest.approx(0.01)
    assert found.longest == pytest.approx(0.01)
    assert gaps_of([burst(2, 1)]) == Gaps()


def test_the_diagnosis_shows_steps_and_acceptance_where_there_are_any() -> None:
    """One sentence with the counts; none for one token a step."""
    line = replace(packed(10, 3), server_timings={"draft_n": 40, "draft_n_accepted": 20})
    told = diagnose(Observations(asks=(ask_of("a", [line]),))).steps
    assert told is not None
    assert told.startswith(
        "3.00 tokens leave in a step, 2.82 in a chunk (1 x 1, 10 x 3); 20 of 40 guessed tokens accepted"
    )
    assert diagnose(Observations(asks=(ask_of("a", [burst(10, 1)]),))).steps is None


def test_the_diagnosis_says_where_tpot_reads_low() -> None:
    """Chunks of four from the first one on: TPOT takes that one for a token, tokens by step do not."""
    moments = [100.1 + 0.016 * number for number in range(16)]
    events = tuple(TokenEvent(at, Channel.CONTENT, " www" * 4) for at in moments)
    line = replace(timeline(), tokens=events, output_tokens=64, flags=("multi_token_chunks",))
    steps = steps_of([line] * 4)
    assert steps is not None
    assert (steps.tokens_per_step, steps.first_chunk) == (4.0, 4.0)
    told = diagnose(Observations(asks=(ask_of("a", [line] * 4),))).steps
    assert told is not None
    assert "the first chunk holds 4, which TPOT takes for one: it reads low by 3/(N - 1)" in told
    assert "do not touch" not in told


def test_a_disproved_count_makes_no_steps() -> None:
    """Twice the tokens that came would look like two tokens in every step."""
    line = replace(burst(10, 1), output_tokens=22)
    assert pace_of(line).tokens_per_step() == pytest.approx(2.1)
    assert pace_of(replace(line, flags=("usage_inconsistent",))).tokens_per_step() is None
