"""How a claim about an engine ends inside a pytest item: with a word, a reason and numbers.

Only the words PASS and IMPROVED let an item pass. Every other word fails the item, inside the item, so that JUnit
and every other reader of test results sees it; the word itself travels along for the exit status and the summary.
"""

from __future__ import annotations

from _pytest.outcomes import Exit, Failed, Skipped

from phasegate.core.showing import shown


class Judged(Failed):
    """An item that does not pass, with the word that says how.

    Attributes:
        word: ``FAIL`` for a broken law, else one of the verdicts, such as ``INCONCLUSIVE`` or ``INVALID_RUN``.
        reason: one line.
        more_would_decide: whether more requests are what is missing.
        names_limit: whether the reason says which limit of the run kept it from measuring more.
    """

    # As pytest's own outcomes do: reports then say "Judged: ..." without a module path.
    __module__ = "builtins"

    def __init__(self, word: str, reason: str, *, more_would_decide: bool = False, names_limit: bool = False) -> None:
        super().__init__(shown(f"{word}: {reason}"), pytrace=False)
        self.word = word
        self.reason = reason
        self.more_would_decide = more_would_decide
        self.names_limit = names_limit


class NotJudged(Skipped):
    """An item that neither passes nor fails: nothing was compared, or the comparison informs only.

    Attributes:
        word: ``NO_BASELINE``, ``INCONCLUSIVE``, ``ADVISORY``, ``UPDATING`` or ``NO_SLO``.
    """

    def __init__(self, word: str, reason: str) -> None:
        super().__init__(shown(f"{word}: {reason}"))
        self.word = word


class NotMeasurable(Exit):
    """The end of a run that has nothing to measure: no server, a wrong key, an engine that does not start."""

    __module__ = "builtins"

    def __init__(self, reason: str) -> None:
        super().__init__(shown(reason), returncode=15)


LETTERS = {
    "INCONCLUSIVE": "I",
    "INVALID_RUN": "V",
    "INVALID_BASELINE": "V",
    "NOT_MEASURED": "V",
    "NO_BASELINE": "N",
    "NOT_COMPARABLE": "N",
    "ADVISORY": "a",
    "UPDATING": "u",
    "NO_SLO": "o",
}
"""Word -> letter in pytest's progress line. Words that are not here print as pytest's own F."""
