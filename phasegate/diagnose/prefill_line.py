"""TTFT over the prompt's length: what reading a token costs, and what every request pays whatever its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.diagnose.observations import Ask


@dataclass(frozen=True, slots=True)
class Line:
    """TTFT over the prompt's length: a part that every request pays, and seconds a token.

    Attributes:
        fixed: seconds; may come out below 0 where attention's share bends the line.
        per_token: seconds.
        shortest, longest: prompts between which it was fitted.
    """

    fixed: float
    per_token: float
    shortest: int
    longest: int

    def reading(self, tokens: int) -> float:
        """Seconds that reading so many tokens takes."""
        return self.per_token * tokens


def prefill_line(asks: Sequence[Ask]) -> Line | None:
    """Least squares of TTFT over prompt length; None with fewer than two lengths.

    Of TTFT without unseen reasoning and without the wait that the server tells: neither is reading, nor the way.
    """
    points = [(ask.prompt_tokens, ask.own_start) for ask in asks if ask.prompt_tokens and ask.own_start is not None]
    lengths = sorted({tokens for tokens, _ in points})
    if len(lengths) < 2:
        return None
    middle = sum(tokens for tokens, _ in points) / len(points)
    level = sum(seconds for _, seconds in points) / len(points)
    spread = sum((tokens - middle) ** 2 for tokens, _ in points)
    slope = sum((tokens - middle) * (seconds - level) for tokens, seconds in points) / spread
    return Line(level - slope * middle, slope, lengths[0], lengths[-1])
