"""Every word that a run can end with, their order, and the exit status of each: one table for all who say a word.

A run's word is decided in one place, `run_word`; its exit status, its summary and its reports all take it from there.
"The worst applies" follows the order of `WORDS`, not the size of the status.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from phasegate.gate.verdict import Verdict

BROKEN = ("INTERRUPTED", "INVALID_BASELINE", "INVALID_RUN", "NOT_MEASURED")
"""Words of a run whose numbers prove nothing."""

BAD = ("REGRESSION", "SLO_BREACH", "FAIL")
"""Words of a run that proved something wrong."""

OPEN = ("NOT_COMPARABLE", "NO_BASELINE", "INCONCLUSIVE", "NOT_JUDGED")
"""Words of a run that decided nothing."""

GOOD = ("PASS", "IMPROVED")
"""Words of a green run."""

WORDS = (*BROKEN, *BAD, *OPEN, *GOOD)
"""Every word a run can end with, worst first: a broken run proves nothing, a regression is proven, the rest is
unknown."""

GREEN = 0

PYTEST_STATUS: dict[str, int] = {
    "INTERRUPTED": 2,
    "INVALID_BASELINE": 15,
    "INVALID_RUN": 15,
    "NOT_MEASURED": 15,
    "REGRESSION": 1,
    "SLO_BREACH": 1,
    "FAIL": 1,
    "NOT_COMPARABLE": 14,
    "NO_BASELINE": 14,
    "INCONCLUSIVE": 13,
    "NOT_JUDGED": GREEN,
    "PASS": GREEN,
    "IMPROVED": GREEN,
}
"""Word -> exit status of pytest. FAIL is a broken law of the engine, or any other failed test. pytest keeps 2 to 5 for
itself, so the statuses of a measuring run stand above them."""

CLI_STATUS: dict[Verdict, int] = {
    Verdict.PASS: GREEN,
    Verdict.IMPROVED: GREEN,
    Verdict.REGRESSION: 1,
    Verdict.SLO_BREACH: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.NO_BASELINE: 4,
    Verdict.NOT_COMPARABLE: 4,
    Verdict.INVALID_RUN: 5,
    Verdict.INVALID_BASELINE: 5,
}
"""Verdict -> exit status of ``phasegate compare``; 2 is kept for wrong usage."""

USAGE = 2

NOT_MEASURED = 5
"""Exit status of every command that could not do its work: no server, a request that failed, a full disk, a fault of
ours. Never 1, which says that something was measured and is too slow or wrong."""

PYTEST_NOT_MEASURED = PYTEST_STATUS["NOT_MEASURED"]
"""The same of a pytest run."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """The word of one part of a run: of a test, of the gate, of the run as a whole.

    Attributes:
        word: one of `WORDS`; any other counts as FAIL.
        tolerated: whether an option or the policy lets a run pass with it. The word is still said where nothing worse
            is, so that a run without a baseline does not call itself a PASS.
    """

    word: str
    tolerated: bool = False


@dataclass(frozen=True, slots=True)
class RunWord:
    """How a run ends: its word, and its exit status under pytest."""

    word: str
    status: int


def run_word(parts: Iterable[Spoken]) -> RunWord:
    """The word of a run and its exit status, from what its parts said.

    The worst word that is not tolerated decides. Where that is a green one, or there is none, the worst tolerated word
    is the run's, with status 0. A run of which no part says anything is NOT_JUDGED.
    """
    said = list(parts)
    counted = [_known(one.word) for one in said if not one.tolerated]
    worst = min(counted, key=WORDS.index, default="NOT_JUDGED")
    if worst not in GOOD and counted:
        return RunWord(worst, PYTEST_STATUS[worst])
    tolerated = min((_known(one.word) for one in said if one.tolerated), key=WORDS.index, default=worst)
    if tolerated not in GOOD:
        return RunWord(tolerated, GREEN)
    # Laws and objectives know no better word than PASS; only the gate says IMPROVED.
    return RunWord("IMPROVED" if "IMPROVED" in counted else worst, GREEN)


def _known(word: str) -> str:
    return word if word in PYTEST_STATUS else "FAIL"


def cli_exit_status(verdict: Verdict, *, inconclusive_fails: bool = True) -> int:
    """The exit status of ``phasegate compare`` for a verdict under the policy's word on INCONCLUSIVE."""
    if verdict is Verdict.INCONCLUSIVE and not inconclusive_fails:
        return GREEN
    return CLI_STATUS[verdict]
