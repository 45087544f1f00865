"""Verdict words -> exit statuses, one table for pytest and one for the command line.

pytest keeps 2 to 5 for itself, so the statuses of a measuring run stand above them. "The worst applies" follows the
order of severity below, not the size of the number.
"""

from __future__ import annotations

from collections.abc import Iterable

from phasegate.gate.verdict import Verdict

GREEN = 0

PYTEST_STATUS: dict[str, int] = {
    "PASS": GREEN,
    "IMPROVED": GREEN,
    "REGRESSION": 1,
    "SLO_BREACH": 1,
    "FAIL": 1,
    "INCONCLUSIVE": 13,
    "NO_BASELINE": 14,
    "NOT_COMPARABLE": 14,
    "INVALID_RUN": 15,
    "INVALID_BASELINE": 15,
}
"""Word -> exit status of pytest. FAIL is a broken law of the engine, or any other failed item."""

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

PYTEST_NOT_MEASURED = 15
"""The same of a pytest run."""

_PYTEST_SEVERITY = (15, 1, 14, 13, GREEN)
"""Worst first: a broken run proves nothing, a regression is proven, the rest is unknown."""


def pytest_exit_status(words: Iterable[str], failed: int) -> int:
    """The exit status of a pytest run.

    Args:
        words: the words of all items that were judged, green or not.
        failed: how many items failed for whatever reason; those without a word count as FAIL.

    Raises:
        KeyError: a word that is not in `PYTEST_STATUS`.
    """
    statuses = [PYTEST_STATUS[word] for word in words]
    if failed > sum(1 for status in statuses if status != GREEN):
        statuses.append(PYTEST_STATUS["FAIL"])
    return min(statuses, key=_PYTEST_SEVERITY.index, default=GREEN)


def cli_exit_status(verdict: Verdict, *, inconclusive_fails: bool = True) -> int:
    """The exit status of ``phasegate compare`` for a verdict under the policy's word on INCONCLUSIVE."""
    if verdict is Verdict.INCONCLUSIVE and not inconclusive_fails:
        return GREEN
    return CLI_STATUS[verdict]
