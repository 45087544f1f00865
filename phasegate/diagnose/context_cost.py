"""What decode pays for a longer context: TPOT at two lengths of context, and what fewer tokens of it would save.

Each step of decode reads the KV cache of all tokens before it. Where that is a visible part of a step, TPOT grows with
the context, and a shorter prompt makes every later token cheaper, not only the first. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasegate.core.units import format_seconds

if TYPE_CHECKING:
    from phasegate.diagnose.observations import Ask

GROWN = 0.05
"""TPOT has grown with the context where it is more than a twentieth longer: less may be chance, and could not make a
lever worth having either."""

JITTER = 0.006
"""And where all steps of the shorter answer together are 6 ms longer for it: its first and its last token may each come
3 ms late on a shared machine, which few tokens do not average out."""


@dataclass(frozen=True, slots=True)
class ContextCost:
    """TPOT at the shortest and the longest context measured, one stream alone.

    Attributes:
        short, long: tokens of context, on average over the answer.
        short_tpot, long_tpot: seconds per output token there.
    """

    short: float
    long: float
    short_tpot: float
    long_tpot: float

    @property
    def per_token(self) -> float:
        """Seconds that each further token of context adds to every output token."""
        return (self.long_tpot - self.short_tpot) / (self.long - self.short)

    def seconds(self, context: float, steps: float) -> float:
        """Seconds that so many tokens of context cost over so many steps of decode."""
        return self.per_token * context * steps

    def words(self) -> str:
        """Both points, for a reader who redoes the arithmetic."""
        return (
            f"TPOT {format_seconds(self.short_tpot)} at {self.short:,.0f} tokens of context, "
            f"{format_seconds(self.long_tpot)} at {self.long:,.0f}"
        )


def context_of(ask: Ask) -> float | None:
    """Tokens that a step of its decode finds in the KV cache, on average: the prompt and half of the answer."""
    if ask.prompt_tokens is None or ask.output_tokens is None:
        return None
    return ask.prompt_tokens + ask.output_tokens / 2


def context_cost(asks: Sequence[Ask]) -> ContextCost | None:
    """How TPOT grows with the context; None where it does not, or where only one length was measured."""
    known = [(context, ask) for ask in asks if (context := context_of(ask)) is not None and ask.tpot is not None]
    if len(known) < 2:
        return None
    (short, few), (long, many) = min(known, key=lambda one: one[0]), max(known, key=lambda one: one[0])
    if few.tpot is None or many.tpot is None or long <= short or not _grown(few, many):
        return None
    return ContextCost(short, long, few.tpot, many.tpot)


def _grown(few: Ask, many: Ask) -> bool:
    """Whether TPOT is seen to grow with the context; the usual gap must have grown as well."""
    short, long = few.tpot or 0.0, many.tpot or 0.0
    steps = min(few.output_tokens or 0.0, many.output_tokens or 0.0) - 1
    gaps = few.usual_gap is None or many.usual_gap is None or many.usual_gap > (1 + GROWN) * few.usual_gap
    return long > (1 + GROWN) * short and (long - short) * steps >= JITTER and gaps
