"""How many tokens the first token event of an answer holds, where chunks hold several.

TPOT divides by N - 1, as the field defines it: it takes the first event for one token. A server or a proxy that sends
k tokens in a chunk sends k in the first one too, and their time lies before it, so the time per token of a short answer
reads low. Speculative decoding sends one token first, and nothing reads low. The text tells the two apart: the first
event's share of it, times the count.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.core.metric import streamed_tokens
from phasegate.core.timeline import Timeline

LUMPS = "multi_token_chunks"

LEAST_DOUBT = 0.5
"""Tokens by which an estimate from text may be off at least: a token is whole, letters are not."""

STANDARD_ERRORS = 2.0
"""Half width of the doubt about the mean of many estimates, in standard errors."""


@dataclass(frozen=True, slots=True)
class FirstEvent:
    """Tokens of the first token event of some answers: a range, which has no width where they were proven.

    Attributes:
        low, high: both at least 1; both 1 where chunks hold one token, or the first one does.
    """

    low: float = 1.0
    high: float = 1.0

    @property
    def readings(self) -> tuple[float, ...]:
        """The numbers of tokens to judge under: one where it is known, else both ends."""
        return (self.low,) if self.low == self.high else (self.low, self.high)

    @property
    def usual(self) -> float:
        """The middle of the range; 1 where one token cannot be excluded."""
        return 1.0 if self.low <= 1 else (self.low + self.high) / 2

    @property
    def words(self) -> str:
        """``4 tokens``, or ``3.5 to 4.5 tokens``."""
        return f"{' to '.join(f'{tokens:.3g}' for tokens in self.readings)} tokens"


ONE_TOKEN = FirstEvent()


def first_event_of(lines: Sequence[Timeline]) -> FirstEvent:
    """What the first event of these answers holds; one token unless most of them came in chunks of several."""
    answers = [line for line in lines if line.status == "ok" and line.sample_valid and line.tokens]
    lumps = [line for line in answers if LUMPS in line.flags and len(line.tokens) > 1]
    if not lumps or 2 * len(lumps) <= len(answers):
        return ONE_TOKEN
    proven = [line.tokens[0].tokens for line in lumps]
    if all(proven):
        mean = statistics.fmean(tokens for tokens in proven if tokens)
        return FirstEvent(max(1.0, mean), max(1.0, mean))
    shares = [tokens for line in lumps if (tokens := _by_text(line)) is not None]
    if not shares:
        return ONE_TOKEN
    mean = statistics.fmean(shares)
    scatter = statistics.stdev(shares) / math.sqrt(len(shares)) if len(shares) > 1 else mean
    doubt = max(LEAST_DOUBT, STANDARD_ERRORS * scatter)
    return FirstEvent(max(1.0, mean - doubt), max(1.0, mean + doubt))


def _by_text(line: Timeline) -> float | None:
    """The first event's share of the text, in tokens; None where tokens are not counted."""
    streamed = streamed_tokens(line)
    if streamed is None:
        return None
    first, last = line.tokens[0].text, line.tokens[-1].text
    grown = "cumulative_text" in line.flags and last.startswith(first)
    return streamed * len(first) / (len(last) if grown else sum(len(one.text) for one in line.tokens))
