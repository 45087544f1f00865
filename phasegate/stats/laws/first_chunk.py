"""Laws of decode where the first token event may hold several tokens: judged under every number it may hold.

What TPOT is stays as the field defines it; the laws ask what a token of decode costs, and divide by the tokens that
came after the first event. Where that number is a range, a law passes or fails only if it does so at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegate.stats.first_event import ONE_TOKEN, FirstEvent
from phasegate.stats.laws.common import sentence
from phasegate.stats.laws.lengths import flat
from phasegate.stats.laws.margins import ALPHA, TPOT_FLAT_MARGIN
from phasegate.stats.outcome import LawResult, Outcome


def flat_decode(
    levels: Sequence[float],
    tpot: ArrayLike,
    *,
    first: FirstEvent = ONE_TOKEN,
    margin: float = TPOT_FLAT_MARGIN,
    alpha: float = ALPHA,
    law: str = "TPOT is flat in output length",
) -> LawResult:
    """A token of decode costs the same at all output lengths, within a margin; see `flat`.

    Args:
        levels: output tokens, one per column.
        tpot: blocks x levels, in seconds per token, as the metric defines it.
        first: tokens of the first token event.
        margin, alpha, law: as `flat`.

    Raises:
        ValueError: the table cannot be used; see `table_of`.
    """
    short = too_short(levels, first, law, alpha)
    return short or under_each(
        first,
        lambda held: flat(levels, per_token(levels, tpot, held), margin=margin, alpha=alpha, law=law),
    )


def per_token(levels: Sequence[float], tpot: ArrayLike, held: float) -> NDArray[np.float64]:
    """Seconds per token after a first event of ``held`` tokens: TPOT x (N - 1) / (N - held)."""
    counts = np.asarray(levels, dtype=np.float64)
    values = np.array(tpot, dtype=np.float64).reshape(-1, counts.size)
    return np.asarray(values * (counts - 1) / (counts - held), dtype=np.float64)


def too_short(levels: Sequence[float], first: FirstEvent, law: str, alpha: float) -> LawResult | None:
    """The result where some answers are not longer than their first event, and have no decode to time; else None."""
    shortest = min(levels)
    if first.high < shortest:
        return None
    reason = (
        f"the first chunk holds {first.words}, so an answer of {shortest:g} tokens has no time per token: ask for "
        "longer ones"
    )
    return LawResult(law, Outcome.INCONCLUSIVE, reason, None, None, None, "fraction", 1 - alpha, 0, None)


def under_each(first: FirstEvent, judge: Callable[[float], LawResult]) -> LawResult:
    """The law under every number of tokens that the first event may hold; undecided where they do not agree."""
    results = [judge(held) for held in first.readings]
    told = results[-1]
    if first == ONE_TOKEN:
        return told
    held = f"the first chunk holds {first.words}, which are left out"
    if len({one.outcome for one in results}) == 1:
        return replace(told, reason=sentence(told.reason, held))
    ends = " and ".join(
        f"{one.outcome.value} with {tokens:.3g}" for one, tokens in zip(results, first.readings, strict=True)
    )
    undecided = next((one for one in results if one.outcome is Outcome.INCONCLUSIVE), None)
    reason = f"the first chunk holds {first.words}; the law ends {ends}: ask for longer answers, where it matters less"
    told = undecided or replace(told, outcome=Outcome.INCONCLUSIVE, needed=None)
    return replace(told, reason=sentence(reason, told.reason))
