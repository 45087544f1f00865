"""How tokens left the engine, from when they came: full chunks, bursts of one speculative step, hand-offs.

Speculative decoding lets several tokens of one step leave together, as one chunk (vLLM) or as several chunks at one
moment (llama.cpp). The gaps between chunks then say nothing about tokens; TPOT, which counts tokens over the whole
span, stays right, and tokens by step show how well guessing goes. TPOT reads low only where the
first chunk holds several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegate.core.timeline import Timeline, TokenEvent
from phasegate.diagnose.observations import Steps
from phasegate.diagnose.thresholds import UNCHANGED
from phasegate.stats.first_event import first_event_of
from phasegate.wire.count_words import is_disproved

SAME_STEP = 0.2
"""Chunks closer together than a fifth of TPOT left in one step: a step of its own takes at least one token's time, and
the chunks of one step follow each other in microseconds."""

LEAST_STEPS = 4
"""Fewer steps have no usual gap."""

DRAFTED, ACCEPTED = "draft_n", "draft_n_accepted"
"""llama.cpp's counts of guessed and accepted tokens among ``timings``."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The steps of one answer.

    Attributes:
        moments: when tokens left, one moment a step, seconds on the client's clock.
        tokens: proven output tokens that streamed; None without a proven count.
        events: token events.
    """

    moments: tuple[float, ...]
    tokens: int | None
    events: int

    def tokens_per_step(self, first: float = 1.0) -> float | None:
        """Tokens by step after the first one, which holds ``first``: one token of prefill, or a chunk of several."""
        if self.tokens is None or self.tokens <= first or len(self.moments) < 2:
            return None
        return (self.tokens - first) / (len(self.moments) - 1)

    @property
    def gaps(self) -> list[float]:
        """Seconds between steps."""
        return [later - earlier for earlier, later in zip(self.moments, self.moments[1:], strict=False)]


def hidden_reasoning(line: Timeline) -> int:
    """Reasoning tokens that were counted and never streamed."""
    return line.reasoning_tokens or 0 if "hidden_reasoning" in line.flags else 0


def pace_of(line: Timeline) -> Pace:
    """When the tokens of an answer left."""
    unproven = line.output_tokens is None or is_disproved(line)
    tokens = None if unproven else (line.output_tokens or 0) - hidden_reasoning(line)
    return Pace(tuple(_moments(line.tokens, tokens)), tokens, len(line.tokens))


def _moments(events: Sequence[TokenEvent], tokens: int | None) -> list[float]:
    if not events:
        return []
    per_token = (events[-1].at - events[0].at) / max(1, (tokens or len(events)) - 1)
    moments = [events[0].at]
    last = events[0].at
    for event in events[1:]:
        if event.at - last > SAME_STEP * per_token:
            moments.append(event.at)
        last = event.at
    return moments


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps between the steps of some answers, in seconds; None where answers are too short.

    Attributes:
        second: before the second step, median.
        usual: all later ones, median.
        longest: the longest later one of an answer, median over answers: how far gaps scatter by themselves.
    """

    second: float | None = None
    usual: float | None = None
    longest: float | None = None


def gaps_of(lines: Sequence[Timeline]) -> Gaps:
    """The gaps of some answers to the same kind of request."""
    long = [gaps for line in lines if len(gaps := pace_of(line).gaps) >= LEAST_STEPS - 1]
    if not long:
        return Gaps()
    return Gaps(
        second=float(np.median([gaps[0] for gaps in long])),
        usual=float(np.median([gap for gaps in long for gap in gaps[1:]])),
        longest=float(np.median([max(gaps[1:]) for gaps in long])),
    )


def steps_of(lines: Sequence[Timeline]) -> Steps | None:
    """How the tokens of some answers left; None without an answer."""
    paces = [pace_of(line) for line in lines if line.tokens]
    if not paces:
        return None
    first = first_event_of(lines).usual
    per_step = [pace.tokens_per_step(first) for pace in paces]
    chunks = [pace.tokens / pace.events for pace in paces if pace.tokens]
    drafted, accepted = (_told(lines, key) for key in (DRAFTED, ACCEPTED))
    known = [value for value in per_step if value is not None]
    return Steps(
        tokens_per_chunk=float(np.median(chunks)) if chunks else None,
        tokens_per_step=float(np.median(known)) if known else None,
        drafted=drafted,
        accepted=accepted if drafted is not None else None,
        chunks=tuple(sorted(chunk_sizes(lines).items())),
        usual_size=_usual_size(lines) if _one_by_one(paces) else None,
        first_chunk=first,
    )


def _one_by_one(paces: Sequence[Pace]) -> bool:
    """Whether each chunk left at a moment of its own, but for what a busy client saw together now and then."""
    return sum(len(pace.moments) for pace in paces) >= (1 - UNCHANGED) * sum(pace.events for pace in paces)


def _usual_size(lines: Sequence[Timeline]) -> float | None:
    """Share of proven chunks of the commonest size; an answer's first and last one are never whole."""
    inner = Counter(event.tokens for line in lines for event in line.tokens[1:-1] if event.tokens)
    return max(inner.values()) / inner.total() if inner else None


def _told(lines: Sequence[Timeline], key: str) -> int | None:
    """Sum of a server's count over all answers; None where no answer has it."""
    told = [line.server_timings.get(key) for line in lines if line.server_timings]
    counts = [int(value) for value in told if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return sum(counts) if counts else None


def chunk_sizes(lines: Sequence[Timeline]) -> Counter[int]:
    """Tokens in a chunk -> chunks, where the server proved each chunk's tokens (running usage or logprobs)."""
    return Counter(event.tokens for line in lines for event in line.tokens if event.tokens)
