"""The first screen: one word, one title, and the answers to four questions: which phase, how much, how sure, what now.

The word is the run's own, the one that its exit status says (`gate.exit_status`). Everything said here is taken from
the parts of the document, so the first screen can say nothing that the rest does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phasegate.gate.exit_status import BROKEN, Spoken, run_word
from phasegate.report.document.headline_green import green
from phasegate.report.document.headline_open import broken, inconclusive, no_baseline, not_comparable, not_judged
from phasegate.report.document.headline_parts import Parts
from phasegate.report.document.headline_worse import breach, failed, regression
from phasegate.report.document.model import Headline

__all__ = ["Parts", "headline_of"]


def headline_of(parts: Parts, word: str = "") -> Headline:
    """The first screen of a run.

    Args:
        parts: what the run found.
        word: with which it ended; empty where no run has said one, so that the parts have to.
    """
    return _SCREENS[word or run_word([*_spoken(parts)] or [Spoken("NOT_MEASURED")]).word](parts)


def _spoken(parts: Parts) -> Iterator[Spoken]:
    """The word of every part that has one."""
    if parts.validity.interrupted:
        yield Spoken("INTERRUPTED")
    if parts.validity.invalid:
        yield Spoken("INVALID_RUN")
    if parts.gate is not None:
        yield Spoken(parts.gate.verdict)
    yield from (Spoken(law.outcome) for law in parts.laws)
    yield from (Spoken(one.verdict) for one in parts.objectives)
    if parts.gate is None and parts.validity.sessions[1]:
        yield Spoken("PASS" if parts.stored else "NO_BASELINE")
    yield from (Spoken(one.word) for one in parts.validity.failures)


_TITLES = {
    "INTERRUPTED": "Stopped before its end",
    "INVALID_BASELINE": "A stored session cannot be used",
    "INVALID_RUN": "The numbers of this run prove nothing",
    "NOT_MEASURED": "Nothing was measured",
}

_SCREENS: dict[str, Callable[[Parts], Headline]] = {
    **{word: broken(word, _TITLES[word]) for word in BROKEN},
    "REGRESSION": regression,
    "SLO_BREACH": breach,
    "FAIL": failed,
    "NOT_COMPARABLE": not_comparable,
    "NO_BASELINE": no_baseline,
    "INCONCLUSIVE": inconclusive,
    "NOT_JUDGED": not_judged,
    "PASS": green("PASS"),
    "IMPROVED": green("IMPROVED"),
}
