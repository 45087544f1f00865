"""What a run asks of a server that bills by the token: planned ahead, and held to a cap.

Everything is counted by what is asked for: prompt tokens, and the most output tokens the server may answer with. A bill
can only be lower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phasegate.workload import Planned, Workload, plan_blocks, plan_warmups

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

    def times(self, count: int) -> Spending:
        """The same so many times."""
        return Spending(self.requests * count, self.input_tokens * count, self.output_tokens * count)

    @property
    def tokens(self) -> int:
        """Of both kinds."""
        return self.input_tokens + self.output_tokens


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


class OverspentError(RuntimeError):
    """The next request would go over the cap; one line."""


@dataclass
class Purse:
    """Keeps a run within a cap on tokens.

    Attributes:
        limit: tokens of both kinds that may be asked for.
        spent: what was asked for so far.
    """

    limit: int
    spent: int = 0

    def take(self, prompt: str, prompt_tokens: int | None, output_tokens: int) -> None:
        """Set the tokens of one request aside, before it is sent.

        Raises:
            OverspentError: they are not there; nothing was taken.
        """
        known = math.ceil(len(prompt) / LETTERS_PER_TOKEN) if prompt_tokens is None else prompt_tokens
        wanted = known + output_tokens
        if self.spent + wanted > self.limit:
            raise OverspentError(
                f"--perf-max-tokens-spent {self.limit} is used up: {self.spent} tokens were asked for and the next "
                f"request may cost {wanted}; allow more, or measure less (--perf-requests, --perf-workloads; "
                "--perf-dry-run shows what a run asks for)"
            )
        self.spent += wanted
