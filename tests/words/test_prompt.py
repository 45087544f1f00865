"""Prompts are exactly as long as promised, on any tokenizer that can be calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.prompt import (
    MOST_COUNTS,
    Calibration,
    CalibrationError,
    PromptWriter,
    UncountableError,
    calibrate,
    calibrate_known,
)
from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.timeline import Expected, Timeline
from phasegate.core.workload import Planned, parse_workload, plan_blocks
from phasegate.measure.session_runner import SessionRunner
from tests.timelines import timeline


class Tokenizer:
    """A tokenizer that breaks some words in two, some only at the start of the text, and adds a template."""

    def __init__(self, overhead: int, broken: set[str], broken_first: set[str]) -> None:
        self.overhead, self.broken, self.broken_first, self.calls = overhead, broken, broken_first, 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        words = text.split(" ")
        first = 2 if words[0] in self.broken | self.broken_first else 1
        return self.overhead + first + sum(2 if word in self.broken else 1 for word in words[1:])


def planned(tokens: int, key: str = "k", prefix: str | None = None) -> Planned:
    return Planned(None, 0, tokens, 4, key, prefix, cold=True)


words = st.sets(st.sampled_from(COMMON_WORDS), max_size=40)


@settings(max_examples=30, deadline=None)
@given(overhead=st.integers(0, 30), broken=words, first=words, tokens=st.integers(40, 200))
def test_a_calibrated_prompt_has_exactly_the_promised_tokens(
    overhead: int, broken: set[str], first: set[str], tokens: int
) -> None:
    count = Tokenizer(overhead, broken, first)
    writer = PromptWriter(calibrate(COMMON_WORDS, count), seed=7)
    for key in ("a", "b", "c"):
        assert count(writer.write(planned(tokens, key))) == tokens


def test_calibrating_takes_few_counts_on_a_friendly_tokenizer() -> None:
    count = Tokenizer(5, {"winter"}, set())
    calibrate(COMMON_WORDS, count)
    assert count.calls < 50


@pytest.mark.parametrize(
    ("count", "calls", "said"),
    [
        (lambda _: 0, 1, "counts 0 tokens for a prompt of one word: this server's prompt counts cannot be believed"),
        (lambda _: 7, 2, "203 more words changed the server's count of a prompt from 7 to 7 tokens"),
        (lambda text: 3 * len(text.split()), 2, "counts 3 tokens for each of 203 common words"),
        (lambda text: 5 + len(text) // 2, MOST_COUNTS, "counts 3.2 tokens a word"),
    ],
)
def test_counts_that_are_of_no_use_are_refused_as_soon_as_they_show(count: Any, calls: int, said: str) -> None:
    """A hosted server bills each count: one shows that there are none, two show that they do not follow the words."""
    asked: list[str] = []

    def counted(text: str) -> int:
        asked.append(text)
        return int(count(text))

    with pytest.raises(UncountableError, match=said):
        calibrate(COMMON_WORDS, counted)
    assert len(asked) <= calls + 1


def test_a_tokenizer_that_breaks_most_words_is_used_by_the_others() -> None:
    """Half of the words in two: the other half is found, and the prompts are as long as promised."""
    count = Tokenizer(5, set(COMMON_WORDS[::2]), set())
    found = calibrate(COMMON_WORDS, count)
    assert not set(found.words) & set(COMMON_WORDS[::2])
    assert count(PromptWriter(found, seed=1).write(planned(90))) == 90


def test_a_server_whose_counts_were_refused_is_not_asked_again() -> None:
    """However many workloads follow."""
    asked: list[str] = []

    @dataclass
    class Uncounted(SessionRunner):
        def send_one(self, prompt: str, expected: Expected, output_tokens: int) -> Timeline:  # noqa: ARG002
            asked.append(prompt)
            return timeline(prompt_tokens=0)

    engine: Any = SimpleNamespace(words=())
    anything: Any = None
    runner = Uncounted(engine, anything, anything, anything, anything, seed=1)
    for _ in range(3):
        with pytest.raises(UncountableError, match="counts 0 tokens"):
            runner.calibration("chat")
    assert len(asked) == 1
    assert runner.prompt_line() == "none written"


def test_a_known_vocabulary_that_the_server_counts_otherwise_is_refused() -> None:
    with pytest.raises(CalibrationError, match="is another model loaded"):
        calibrate_known(COMMON_WORDS, Tokenizer(5, set(COMMON_WORDS), set()))


def test_a_prompt_shorter_than_the_template_is_refused_with_the_remedy() -> None:
    writer = PromptWriter(calibrate(COMMON_WORDS, Tokenizer(12, set(), set())), seed=1)
    with pytest.raises(CalibrationError, match="ask for at least 14 input tokens"):
        writer.write(planned(13))


def test_shared_prompts_share_exactly_their_prefix() -> None:
    writer = PromptWriter(calibrate(COMMON_WORDS, Tokenizer(4, set(), set())), seed=3)
    one = writer.write(planned(60, "one", "p"), shared_tokens=40).split()
    two = writer.write(planned(60, "two", "p"), shared_tokens=40).split()
    common = next(i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    assert len(one) == len(two) == 56
    assert 36 <= common <= 37  # the first word of the suffix may be the same by chance, the second may not


@settings(max_examples=30, deadline=None)
@given(
    overhead=st.integers(0, 12),
    tokens=st.integers(30, 90),
    shared=st.integers(0, 29),
    prefix=st.sampled_from([None, "p"]),
)
def test_the_parts_of_a_prompt_are_the_prompt_to_the_letter(
    overhead: int, tokens: int, shared: int, prefix: str | None
) -> None:
    """And cost the same tokens; the cut lies behind the shared words, before a space."""
    calibration = calibrate_known(COMMON_WORDS, Tokenizer(overhead, set(), set()))
    one = planned(tokens, prefix=prefix)
    whole = PromptWriter(calibration, seed=3).write(one, shared)
    beginning, rest = PromptWriter(calibration, seed=3).parts(one, shared)
    assert beginning + rest == whole
    assert len(beginning.split()) + len(rest.split()) == tokens - overhead
    if shared:
        assert len(beginning.split()) == max(2, shared - overhead)
        assert rest == "" or rest[0] == " "
    elif prefix is None:
        assert rest == ""


def test_no_two_prompts_of_a_plan_begin_alike_and_seeds_decide_the_words() -> None:
    workload = parse_workload("input_tokens: [32, 64]\noutput_tokens: 4\nrequests: 100\n", "w.yaml")
    calibration = calibrate(COMMON_WORDS, Tokenizer(4, set(), set()))
    plan = plan_blocks(workload, np.random.default_rng(0))
    prompts = {seed: [writer.write(one) for one in plan] for seed, writer in writers(calibration, 1, 2)}
    again = [writer.write(one) for _, writer in writers(calibration, 1) for one in plan]
    assert len({tuple(prompt.split()[:2]) for prompt in prompts[1]}) == len(plan)
    assert prompts[1] == again
    assert prompts[1] != prompts[2]


def writers(calibration: Calibration, *seeds: int) -> list[tuple[int, PromptWriter]]:
    return [(seed, PromptWriter(calibration, seed)) for seed in seeds]
