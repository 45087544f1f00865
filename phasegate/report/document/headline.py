"""The first screen: one word, one title, and the answers to four questions: which phase, how much, how sure, what now.

The worst word of the run decides, in the order of the exit statuses. Everything said here is taken from the parts of
the document, so the first screen can say nothing that the rest does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from phasegate.report.document.headline_green import green
from phasegate.report.document.headline_open import broken, inconclusive, no_baseline, not_comparable
from phasegate.report.document.headline_parts import Parts, stored_words
from phasegate.report.document.headline_worse import breach, failed, regression
from phasegate.report.document.model import BROKEN, WORDS, Headline

__all__ = ["Parts", "headline_of"]


def headline_of(parts: Parts) -> Headline:
    """The first screen of a run."""
    words = list(_words(parts))
    word = min(words, key=_badness) if words else "NOT_MEASURED"
    if word == "PASS" and parts.gate is not None and parts.gate.verdict == "IMPROVED":
        # Laws and objectives know no better word than PASS.
        word = "IMPROVED"
    return _SCREENS[word](parts)


def _badness(word: str) -> int:
    return WORDS.index(word) if word in WORDS else WORDS.index("FAIL")


def _words(parts: Parts) -> Iterator[str]:
    """The word of every part of the run that has one."""
    if parts.validity.interrupted:
        yield "INTERRUPTED"
    if parts.validity.invalid:
        yield "INVALID_RUN"
    if parts.gate is not None:
        yield parts.gate.verdict
    yield from (law.outcome for law in parts.laws)
    yield from (one.verdict for one in parts.objectives)
    if parts.gate is None and parts.validity.sessions[1]:
        yield "PASS" if stored_words(parts) else "NO_BASELINE"
    yield from (one.word if one.word in WORDS else "FAIL" for one in parts.validity.failures)


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
    "PASS": green("PASS"),
    "IMPROVED": green("IMPROVED"),
}
