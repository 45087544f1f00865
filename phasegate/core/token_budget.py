"""What a run asks of a server, in requests and tokens: planned ahead, and counted by the same rule where it is sent.

Everything is counted by what is asked for: prompt tokens, and the most output tokens the server may answer with. A bill
can only be lower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.core.prompt import calibrate, calibrate_known
from phasegate.core.workload import Planned, Workload, plan_blocks, plan_warmups

LETTERS_PER_TOKEN = 2
"""Of a text whose tokens nobody has counted yet: fewer than real tokenizers need, so that the guess is high."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Requests and the tokens they may cost at most."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def less(self, other: Spending) -> Spending:
        """What is left of it, never below nothing."""
        return Spending(
            max(0, self.requests - other.requests),
            max(0, self.input_tokens - other.input_tokens),
            max(0, self.output_tokens - other.output_tokens),
        )

    def times(self, count: int) -> Spending:
        """The same so many times."""
        return Spending(self.requests * count, self.input_tokens * count, self.output_tokens * count)

    @property
    def tokens(self) -> int:
        """Of both kinds."""
        return self.input_tokens + self.output_tokens


NOTHING = Spending()


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a planned run, such as a workload in so many sessions.

    Attributes:
        name: what it is, for the table of a dry run.
        once: what it asks for in one go.
        times: goes that are planned.
        most: goes that it may come to while something stays undecided; None where it cannot grow.
        seconds: what a go takes beside its requests, such as an engine started again.
    """

    name: str
    once: Spending
    times: int = 1
    most: int | None = None
    seconds: float = 0.0

    @property
    def planned(self) -> Spending:
        """What is planned of it."""
        return self.once.times(self.times)

    @property
    def at_most(self) -> Spending:
        """What it may come to."""
        return self.once.times(self.times if self.most is None else max(self.most, self.times))


def in_all(parts: Sequence[Part]) -> Spending:
    """What all parts ask for as planned."""
    return sum((part.planned for part in parts), NOTHING)


def at_most(parts: Sequence[Part]) -> Spending:
    """What all parts may come to."""
    return sum((part.at_most for part in parts), NOTHING)


def spending_of(workload: Workload, requests: int | None = None) -> Spending:
    """What one session of a workload asks for, warm-ups included."""
    asked = workload.with_requests(requests)
    # The order is drawn, what is asked for is not.
    return _sum([*plan_warmups(asked), *plan_blocks(asked, np.random.default_rng(0))])


def load_spending(workload: Workload, requests: int) -> Spending:
    """What so many requests of a workload under load ask for; its blocks in turn, the longest where one is begun."""
    block = plan_blocks(workload.with_requests(1), np.random.default_rng(0))
    whole, rest = divmod(requests, len(block))
    longest = max(block, key=lambda one: one.input_tokens + one.output_tokens)
    return _sum(block).times(whole) + _sum([longest] * rest)


def _sum(plan: list[Planned]) -> Spending:
    return Spending(len(plan), sum(one.input_tokens for one in plan), sum(one.output_tokens for one in plan))


def guessed_tokens(prompt: str) -> int:
    """Tokens of a text that nobody has counted yet, guessed high."""
    return math.ceil(len(prompt) / LETTERS_PER_TOKEN)


def counting_spending(words: Sequence[str], *, known: bool) -> Spending:
    """What it asks for to learn how a server counts prompt tokens, where every word is one token.

    Args:
        words: that prompts are written with.
        known: whether the engine's vocabulary is known, so that only the template is counted.
    """
    asked: list[str] = []

    def count(prompt: str) -> int:
        asked.append(prompt)
        return len(prompt.split())

    (calibrate_known if known else calibrate)(words, count)
    return Spending(len(asked), sum(map(guessed_tokens, asked)), len(asked))


class LimitReachedError(RuntimeError):
    """Nothing more may be sent: the time or the tokens that the user gave are used up. One line that names which."""
