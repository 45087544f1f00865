"""Kinds of request in two sittings side by side: which of them got slower, by how much, and how well that is known.

The gate decides whether a change is more than noise. Where it has compared, a pair counts as slower only by its proof;
else by the size of the change. Either way the first token's own step of decode, which is in every TTFT, is decode's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phasegate.core.units import format_seconds
from phasegate.diagnose.explanation import Case, Confidence
from phasegate.diagnose.observations import Ask
from phasegate.diagnose.prefill_line import Line, prefill_line
from phasegate.diagnose.proof import Proven
from phasegate.diagnose.thresholds import MATERIAL_SECONDS, READING_SHARE


@dataclass(frozen=True, slots=True)
class Pair:
    """One kind of request in both sittings."""

    before: Ask
    now: Ask

    def grown(self, of: Callable[[Ask], float | None]) -> float:
        """Seconds by which a figure grew; 0.0 where one side lacks it."""
        old, new = of(self.before), of(self.now)
        return new - old if old is not None and new is not None else 0.0

    @property
    def step(self) -> float:
        """Seconds by which a step of decode grew, 0.0 where it did not: TTFT has the first token's own step in it."""
        return max(0.0, self.grown(_step))

    @property
    def start(self) -> float:
        """Seconds by which TTFT grew beyond that, and beyond unseen reasoning and a wait that the server tells."""
        return self.grown(lambda ask: _told_start(ask, self)) - self.step

    @property
    def waited(self) -> float:
        """Seconds by which the server's own queue grew; 0.0 where one side does not tell it."""
        return self.grown(lambda ask: ask.server_queue)


def _told_start(ask: Ask, pair: Pair) -> float | None:
    """TTFT without unseen reasoning, and without the server's queue where both sides tell it."""
    if ask.prefill_part is None or None in (pair.before.server_queue, pair.now.server_queue):
        return ask.prefill_part
    return ask.own_start


def _step(ask: Ask) -> float | None:
    """Seconds that a step of decode takes; it yields more than a token where guesses are seen to be right."""
    return None if ask.tpot is None else ask.tpot * (ask.steps.yielded if ask.steps is not None else 1.0)


def told_prefill(pair: Pair) -> bool:
    """Whether the server tells its own prefill time in both sittings."""
    return pair.before.server_prefill is not None and pair.now.server_prefill is not None


def pairs(case: Case) -> Iterator[Pair]:
    """Kinds of request measured in both sittings."""
    if case.before is not None:
        for now in case.later.asks:
            before = case.before.ask(now.name)
            if before is not None:
                yield Pair(before, now)


def slower(case: Case, new: float | None, old: float | None) -> bool:
    """Whether a time has grown enough to be explained."""
    return new is not None and old is not None and new - old >= MATERIAL_SECONDS and new >= old * (1 + case.least)


def grew(case: Case, pair: Pair, metric: str, of: Callable[[Ask], float | None]) -> bool:
    """Whether a time of a pair has grown: by the gate's proof for its metric, where a gate has looked."""
    if case.proof is not None:
        return case.proof.row(pair.now.name, metric) is not None and pair.grown(of) > 0
    return slower(case, of(pair.now), of(pair.before))


def later_first_token(case: Case) -> list[Pair]:
    """Pairs whose TTFT grew, for whatever reason."""
    return [pair for pair in pairs(case) if grew(case, pair, "ttft", lambda ask: ask.ttft)]


def started_slower(case: Case) -> list[Pair]:
    """Pairs whose TTFT grew by more than a slower step of decode, unseen reasoning and a told wait explain.

    Of a wait among others only everybody's mean is known, so what is left of TTFT then belongs to nothing for certain.
    """
    known = [pair for pair in later_first_token(case) if not (pair.now.crowded or pair.before.crowded)]
    return [pair for pair in known if worth_naming(case, pair, pair.start, READING_SHARE)]


def worth_naming(case: Case, pair: Pair, seconds: float, share: float) -> bool:
    """Whether a part is such a share of what TTFT grew by, and is felt at all where no gate has proven it."""
    least = MATERIAL_SECONDS if case.proof is None else 0.0
    return seconds >= max(least, share * pair.grown(lambda ask: ask.ttft)) and seconds > 0


def worst(case: Case, grown: list[Pair], metric: str, by: Callable[[Pair], float]) -> tuple[Pair, Proven | None]:
    """The pair that grew most, one that decides the build before one that informs; with its proof, if there is one."""
    proof = case.proof
    rows = [None if proof is None else proof.row(pair.now.name, metric) for pair in grown]
    place = max(range(len(grown)), key=lambda at: (getattr(rows[at], "gated", False), by(grown[at])))
    return grown[place], rows[place]


def ttft_words(pair: Pair, proven: Proven | None) -> list[str]:
    """What TTFT was and is, with its proof, and what of it is decode's."""
    said = [moved("TTFT", pair.before.ttft, pair.now.ttft, proven)]
    if pair.step >= MATERIAL_SECONDS:
        said.append(f"{format_seconds(pair.step)} of it is the first token's own step, which decode explains")
    return said


def moved(name: str, old: float | None, new: float | None, proven: Proven | None) -> str:
    """``TPOT 5.00 ms -> 9.00 ms`` with what the gate proved of it."""
    return f"{name} {format_seconds(old)} -> {format_seconds(new)}" + (f" ({proven.words})" if proven else "")


def lines_of(case: Case) -> tuple[Line, Line] | None:
    """TTFT over prompt length in both sittings, over the kinds of request that both have."""
    both = list(pairs(case))
    old, new = prefill_line([one.before for one in both]), prefill_line([one.now for one in both])
    return (old, new) if old is not None and new is not None else None


def sure(case: Case, proven: Proven | None) -> Confidence:
    """Sure; where a gate has compared, only of what it proved by a row that decides the build."""
    decided = case.proof is None or (proven is not None and proven.gated)
    return Confidence.SURE if decided else Confidence.LIKELY
