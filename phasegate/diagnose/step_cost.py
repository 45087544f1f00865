"""What a step of decode costs that has several tokens to compute, as several users show it. Pure.

Checking guessed tokens is such a step: an engine computes one position more for each guess. How much longer a step gets
with several streams in it is measured wherever several users were; that is what speculative decoding has to earn back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phasegate.diagnose.observations import Level
from phasegate.diagnose.thresholds import TOGETHER_STREAMS

READING_MOST = 0.2
"""Most of a lone request that reading its prompt may take: with more, prompts are read in so many steps that the usual
gap between tokens shows them, and not what a stream more costs."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """A step with several streams against one with a single stream.

    Attributes:
        users: how many there were.
        streams: that decoded at a time, on average.
        times: how many times as long a step took.
    """

    users: float
    streams: float
    times: float

    def of_tokens(self, tokens: int) -> float:
        """How many times as long a step with so many tokens takes, at least: never more than was measured."""
        return 1 + (self.times - 1) * min(1.0, (tokens - 1) / (self.streams - 1))


def step_cost(levels: Sequence[Level], reading: float, own: float = 0.0) -> StepCost | None:
    """How a step grows with streams; None where one user or several streams at a time were not measured.

    None as well where prompts take much of the requests.

    Args:
        levels: users, ascending.
        reading: share of a lone request that passes with its prompt.
        own: seconds that each stream's own KV cache adds to a step. Streams add it each, guesses of one stream do not.
    """
    single = next((one for one in levels if one.users == 1), None)
    several = [one for one in levels if one.users > 1 and (one.decoding or 0.0) >= TOGETHER_STREAMS]
    if single is None or not several or reading > READING_MOST:
        return None
    top = several[-1]
    alone, many = (one.usual_gap or one.tpot for one in (single, top))
    if not (single.usual_gap and top.usual_gap):
        alone, many = single.tpot, top.tpot
    if not alone or not many or top.decoding is None:
        return None
    shared = many - (top.decoding - 1) * own
    return StepCost(top.users, top.decoding, max(1.0, shared / alone))
