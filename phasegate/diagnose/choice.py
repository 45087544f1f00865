"""Which lever comes first: the findings' order, told by what can be reckoned. Pure.

The first finding leads: of its levers the first with a saving worth having, one that needs other hardware only where
no other is left. A general remark of a finding ("will not help") does not stand against a saving that was measured,
and a bound does not stand against the remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phasegate.diagnose import Diagnosis, Explanation
from phasegate.diagnose.explanation import NEITHER
from phasegate.diagnose.savings import Saving, kinds_of
from phasegate.gate.levers import Lever

WORTH = 0.05
"""A lever that saves less than a twentieth of the request is listed under what will not help."""

THROUGHPUT = "throughput"
"""The phase of findings about many users: what it says of decode's levers holds for decode."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do first.

    Attributes:
        finding: what leads to it, or None where nothing is slow.
        first: the lever with its saving, or None where it cannot be reckoned or there is none.
        unreckoned: the finding's first lever that no figure can be put on, where none of the others is worth having;
            else None.
        then: other levers worth having that need no other hardware, in order.
    """

    finding: Explanation | None
    first: Saving | None
    unreckoned: Lever | None
    then: tuple[Saving, ...]


def worth(one: Saving, whole: float) -> bool:
    """Whether it saves a share of the request that is worth having."""
    return one.seconds > 0 and one.seconds >= WORTH * whole


def choose(found: Sequence[Saving], diagnosis: Diagnosis, whole: float) -> Choice:
    """The first lever and those after it.

    Args:
        found: savings, the largest first.
        diagnosis: what the rules found.
        whole: seconds of the request.
    """
    usable = [one for one in found if worth(one, whole) and not refused(one, diagnosis)]
    finding = next((one for one in diagnosis.found if one.phase != NEITHER), None)
    named = _named(finding, usable) if finding is not None else []
    others = sorted((one for one in usable if one.where != "hardware"), key=lambda one: one.where != "server")
    order = list(dict.fromkeys([*named, *others]))
    if not named and finding is not None:
        unreckoned = next((lever for lever in finding.levers if not kinds_of(lever.name)), None)
        if unreckoned is not None:
            return Choice(finding, None, unreckoned, _soft(order))
    if not order:
        return Choice(None, None, None, ())
    return Choice(finding if named else None, order[0], None, _soft(order[1:]))


def _named(finding: Explanation, usable: Sequence[Saving]) -> list[Saving]:
    """Savings in the order of the finding's levers, other hardware last."""
    named = [one for lever in finding.levers for one in usable if one.kind in kinds_of(lever.name)]
    return sorted(dict.fromkeys(named), key=lambda one: one.where == "hardware")


def _soft(order: Sequence[Saving]) -> tuple[Saving, ...]:
    return tuple(one for one in order if one.where != "hardware")


def refused(one: Saving, diagnosis: Diagnosis) -> bool:
    """Whether a finding says that this lever will not help the phase that it acts on, and no measurement does."""
    return one.at_most and any(_speaks_of(finding, remark, one) for finding, remark in _remarks(diagnosis))


def remarks(found: Sequence[Saving], diagnosis: Diagnosis) -> dict[str, list[str]]:
    """What the findings say will not help -> against which symptoms; none that a measured saving refutes."""
    told: dict[str, list[str]] = {}
    for finding, remark in _remarks(diagnosis):
        if any(not one.at_most and one.seconds > 0 and _speaks_of(finding, remark, one) for one in found):
            continue
        symptoms = told.setdefault(remark, [])
        if finding.symptom not in symptoms:
            symptoms.append(finding.symptom)
    return told


def _remarks(diagnosis: Diagnosis) -> Iterator[tuple[Explanation, str]]:
    for finding in diagnosis.found:
        if finding.phase != NEITHER:
            for remark in finding.will_not_help:
                yield finding, remark


def _speaks_of(finding: Explanation, remark: str, one: Saving) -> bool:
    phase = "decode" if finding.phase == THROUGHPUT else finding.phase
    return phase in one.phase.split(" and ") and one.kind in kinds_of(remark.split(":")[0])
