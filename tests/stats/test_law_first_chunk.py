"""Servers that send several tokens in a chunk keep the laws of decode, and break them only where they are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from perf_tests import test_decode
from phasegate.core.timeline import Channel, Timeline, TokenEvent
from phasegate.core.workload import parse_workload, plan_blocks
from phasegate.stats import laws
from phasegate.stats.first_event import ONE_TOKEN, FirstEvent, first_event_of
from phasegate.stats.outcome import LawResult, Outcome
from phasegate.stats.workload_run import Measured, WorkloadRun
from tests.timelines import timeline

LENGTHS = [16, 64, 128, 256]

CLAIMS = {
    "flat": test_decode.test_tpot_is_flat_in_output_length,
    "line": test_decode.test_total_is_linear_in_output_length,
}

TTFT, TPOT = 0.027, 0.004


def lumps(
    tokens: int,
    sizes: Callable[[np.random.Generator, int], int],
    rng: np.random.Generator,
    at: Callable[[int], float] = lambda place: TPOT * place,
    proven: bool = False,
) -> Timeline:
    """An answer whose chunks hold ``sizes(rng, number)`` tokens and leave with their last one.

    Tokens are one to eight letters long. ``at`` gives the moment of a token behind TTFT.
    """
    events: list[TokenEvent] = []
    done = 0
    while done < tokens:
        size = min(sizes(rng, len(events)), tokens - done)
        text = "".join(" " + "w" * int(rng.integers(0, 8)) for _ in range(size))
        moment = 100.0 + TTFT * rng.normal(1, 0.01) + at(done + size - 1) * rng.normal(1, 0.005)
        events.append(TokenEvent(moment, Channel.CONTENT, text, tokens=size if proven else None))
        done += size
    flags = ("multi_token_chunks",) if len(events) < tokens else ()
    return replace(timeline(), tokens=tuple(events), output_tokens=tokens, flags=flags)


def ran(answer: Callable[[int, np.random.Generator], Timeline], lengths: list[int] = LENGTHS) -> WorkloadRun:
    """Eight blocks of the workload output-length on a server that answers so."""
    workload = parse_workload(f"input_tokens: 128\noutput_tokens: {lengths}\nrequests: 8\n", "output-length.yaml")
    rng = np.random.default_rng(5)
    plan = plan_blocks(workload, rng)
    return WorkloadRun(workload, tuple(Measured(one, answer(one.output_tokens, rng)) for one in plan))


def judged(claim: str, run: WorkloadRun) -> LawResult:
    """What the claim says of it."""
    results: list[LawResult] = []
    law: Any = CLAIMS[claim]
    law(lambda _: run, results.append)
    return results[0]


def four(rng: np.random.Generator, number: int) -> int:  # noqa: ARG001
    return 4


def guessed(rng: np.random.Generator, number: int) -> int:
    return 1 if number == 0 else int(rng.integers(1, 6))


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(("sizes", "proven"), [(four, False), (four, True), (guessed, False)])
def test_a_steady_server_that_sends_lumps_keeps_the_laws(claim: str, sizes: Any, *, proven: bool) -> None:
    """Fixed chunks of four, estimated or proven, and speculative decoding with its single first token."""
    result = judged(claim, ran(lambda tokens, rng: lumps(tokens, sizes, rng, proven=proven)))
    assert result.outcome is Outcome.PASS, result.reason


@pytest.mark.parametrize("claim", CLAIMS)
def test_fixed_lumps_break_the_laws_where_they_are_not_taken_into_account(claim: str) -> None:
    """So the laws above pass because of the estimate: without it the same answers are called broken."""
    run = ran(lambda tokens, rng: replace(lumps(tokens, four, rng), flags=()))
    assert run.first_event() == ONE_TOKEN
    assert judged(claim, run).outcome is Outcome.FAIL


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("sizes", [four, guessed])
def test_tokens_that_get_dearer_fail_in_lumps_too(claim: str, sizes: Any) -> None:
    """A token of a long answer costs up to twice as much."""
    run = ran(lambda tokens, rng: lumps(tokens, sizes, rng, lambda place: TPOT * place * (1 + place / 256)))
    assert judged(claim, run).outcome is Outcome.FAIL


def test_what_the_first_chunk_holds_is_proven_or_estimated_or_one() -> None:
    """From the server's own counts, from the share of the text, and one where chunks hold one token."""
    rng = np.random.default_rng(1)
    answers = [lumps(64, four, rng) for _ in range(24)]
    estimated = first_event_of(answers)
    assert estimated.low < 4 < estimated.high < 5.5
    assert first_event_of([lumps(64, four, rng, proven=True)] * 3) == FirstEvent(4, 4)
    alone = first_event_of([lumps(64, guessed, rng) for _ in range(24)])
    assert alone.low <= 1.2
    assert alone.high < 2
    assert first_event_of([lumps(64, lambda rng, number: 1, rng)] * 3) == ONE_TOKEN  # noqa: ARG005
    cumulative = replace(answers[0], flags=("cumulative_text", "multi_token_chunks"))
    texts = [one.text for one in cumulative.tokens]
    grown = tuple(replace(one, text="".join(texts[: i + 1])) for i, one in enumerate(cumulative.tokens))
    assert first_event_of([replace(cumulative, tokens=grown)]) == first_event_of(answers[:1])


def test_an_estimate_that_leaves_the_law_open_decides_nothing() -> None:
    """A growth of 14 %: within the margin with 3.3 tokens in the first chunk, beyond it with 5.3."""
    levels, each = [16, 256], np.array([[TPOT * 1.14 * 12 / 15, TPOT * 252 / 255]] * 6)
    each *= np.random.default_rng(2).normal(1, 0.001, each.shape)
    ends = [laws.flat_decode(levels, each, first=FirstEvent(held, held)).outcome for held in (3.3, 5.3)]
    assert ends == [Outcome.PASS, Outcome.FAIL]
    result = laws.flat_decode(levels, each, first=FirstEvent(3.3, 5.3))
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed is None
    assert "the first chunk holds 3.3 to 5.3 tokens; the law ends PASS with 3.3 and FAIL with 5.3" in result.reason


@pytest.mark.parametrize("claim", CLAIMS)
def test_answers_of_one_chunk_are_told_to_be_too_short(claim: str) -> None:
    """Sixteen tokens in a chunk leave nothing to time in an answer of sixteen; more requests would not help."""
    result = judged(claim, ran(lambda tokens, rng: lumps(tokens, lambda rng, number: 16, rng, proven=True)))  # noqa: ARG005
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.needed is None
    assert "the first chunk holds 16 tokens, so an answer of 16 tokens has no time per token" in result.reason
