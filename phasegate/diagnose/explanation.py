"""What a rule of the diagnosis says: where time went, what shows it, what helps, and what does not."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from phasegate.diagnose.observations import Observations
from phasegate.diagnose.proof import Proof
from phasegate.diagnose.thresholds import CHANGED
from phasegate.gate.levers import Lever


class Confidence(str, enum.Enum):
    """How well the figures tell a cause from others."""

    SURE = "sure"
    """The other causes of the same symptom are excluded by a figure of their own."""
    LIKELY = "likely"
    """The figures fit this cause best; what would exclude the others was not measured."""


NEITHER = "neither"
"""The phase of what is not the engine's doing."""

PHASES = ("prefill", "decode", "queueing", "throughput", "network", "hand-off", NEITHER)
"""Where an explanation can put the time. The first two are the phases of a request; the others come between."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One thing that takes a request's time.

    Attributes:
        rule: the name of the rule that found it.
        symptom: what a user notices, in few words.
        cause: what takes the time, in one clause.
        phase: one of `PHASES`.
        seconds: of a request that it explains.
        of: which request, or what part of the load.
        evidence: figures with units, one clause each.
        confidence: see `Confidence`.
        levers: in the order worth trying.
        will_not_help: what people try here without effect, with the reason.
        change: whether it explains a change against an earlier measurement.
        part: what it is a part of: ``start`` (TTFT), ``stream`` (decode), or empty.
    """

    rule: str
    symptom: str
    cause: str
    phase: str
    seconds: float
    of: str
    evidence: tuple[str, ...]
    confidence: Confidence
    levers: tuple[Lever, ...]
    will_not_help: tuple[str, ...] = ()
    change: bool = False
    part: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at.

    Attributes:
        now: what was measured.
        before: the same in an earlier sitting, or None.
        found: what rules before this one found, so that a general rule claims only the rest.
        least: smallest growth that is explained, a fraction.
        after: what ``before`` is compared with, where that is not ``now``: the sessions that a gate compared.
        proof: what a gate proved slower between the two; None where no gate has compared them.
    """

    now: Observations
    before: Observations | None = None
    found: Sequence[Explanation] = field(default=())
    least: float = CHANGED
    after: Observations | None = None
    proof: Proof | None = None

    @property
    def later(self) -> Observations:
        """The later side of the comparison."""
        return self.now if self.after is None else self.after

    def claimed(self, part: str, of: str) -> float:
        """Seconds of a part of a request that are explained already."""
        return sum(one.seconds for one in self.found if (one.part, one.of) == (part, of) and not one.change)

    def named(self, rule: str, of: str) -> bool:
        """Whether a rule has found something of that request."""
        return any((one.rule, one.of) == (rule, of) for one in self.found)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the framework.

    Attributes:
        name: unique.
        sign: what it looks at, in one sentence, with its thresholds.
        phase: where it puts the time.
        needs: what must have been measured.
        remedy: its levers, a key of `remedies.REMEDIES`.
        look: the rule itself.
    """

    name: str
    sign: str
    phase: str
    needs: str
    remedy: str
    look: Callable[[Case], Explanation | None]
