"""How the judgement of a phase law ends: a word, a reason, an effect and its interval."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Outcome(str, enum.Enum):
    """The three ways a law ends. Only PASS is green; INCONCLUSIVE is never shown as a pass."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


def combined(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome of a law with several parts: every part must pass, and one failed part fails the law.

    Demanding that all parts pass needs no correction for their number (intersection-union test, Berger 1982).

    Raises:
        ValueError: there is no part.
    """
    parts = set(outcomes)
    if not parts:
        raise ValueError("a law needs at least one part to be judged")
    for word in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        if word in parts:
            return word
    return Outcome.PASS


@dataclass(frozen=True, slots=True)
class LawResult:
    """One law, judged on the data of one session.

    Attributes:
        law: the claim in words.
        outcome: the word.
        reason: one sentence with the numbers that decided, and what to do where it did not pass.
        effect: the deciding estimate, in ``unit``; None where there were too few data for any estimate.
        low, high: its interval, each bound one-sided at ``confidence``; None with ``effect``.
        unit: what ``effect`` is measured in: ``"fraction"`` (0.05 is 5 %), ``"s per 1,000 tokens"``,
            ``"fraction per 1,000 tokens"``, ``"fraction of requests"``, ``"ratio"``, ``"s"``.
        confidence: of each bound, such as 0.95.
        n: blocks (repetitions) that carry the judgement; requests for the law about stalls.
        needed: how many more of them would probably decide (power 0.9 if the estimates hold); None when decided.
        warnings: remarks worded as remedies.
        detail: a code for the way a law failed, such as ``"cache_off"``; empty where the outcome says it all.
    """

    law: str
    outcome: Outcome
    reason: str
    effect: float | None
    low: float | None
    high: float | None
    unit: str
    confidence: float
    n: int
    needed: int | None
    warnings: tuple[str, ...] = ()
    detail: str = ""
