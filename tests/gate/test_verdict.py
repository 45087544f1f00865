"""Words, their order, and the exit statuses they give."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from phasegate.gate.exit_status import CLI_STATUS, PYTEST_STATUS, WORDS, Spoken, cli_exit_status, run_word
from phasegate.gate.verdict import Coverage, Finding, GateResult, Verdict, worst


def test_every_verdict_has_a_status_in_both_tables() -> None:
    assert set(CLI_STATUS) == set(Verdict)
    assert {verdict.value for verdict in Verdict} < set(PYTEST_STATUS)
    assert set(PYTEST_STATUS) == set(WORDS)


def test_only_pass_and_improved_are_green() -> None:
    green = {Verdict.PASS, Verdict.IMPROVED}
    for verdict in Verdict:
        assert verdict.green == (verdict in green)
        assert (CLI_STATUS[verdict] == 0) == verdict.green
        assert (PYTEST_STATUS[verdict.value] == 0) == verdict.green


def test_the_worst_word_wins_in_any_order() -> None:
    for one, two in itertools.permutations(Verdict, 2):
        assert worst([one, two]) == worst([two, one])
        assert worst([one, two]).badness == max(one.badness, two.badness)
    assert worst([Verdict.IMPROVED, Verdict.REGRESSION, Verdict.INCONCLUSIVE]) is Verdict.REGRESSION


def test_nothing_has_no_worst() -> None:
    with pytest.raises(ValueError):
        worst([])


@pytest.mark.parametrize(
    ("words", "word", "status"),
    [
        (["PASS", "IMPROVED"], "IMPROVED", 0),
        (["PASS", "REGRESSION", "INCONCLUSIVE", "NO_BASELINE"], "REGRESSION", 1),
        (["SLO_BREACH"], "SLO_BREACH", 1),
        (["INCONCLUSIVE"], "INCONCLUSIVE", 13),
        (["INCONCLUSIVE", "NOT_COMPARABLE"], "NOT_COMPARABLE", 14),
        (["REGRESSION", "INVALID_RUN"], "INVALID_RUN", 15),
        (["INVALID_BASELINE"], "INVALID_BASELINE", 15),
        (["INCONCLUSIVE", "FAIL"], "FAIL", 1),
        (["FAIL"], "FAIL", 1),
        (["PASS", "a word of somebody else"], "FAIL", 1),
        (["PASS", "NOT_MEASURED"], "NOT_MEASURED", 15),
        ([], "NOT_JUDGED", 0),
    ],
)
def test_the_worst_word_decides_the_runs_word_and_pytests_status(words: list[str], word: str, status: int) -> None:
    found = run_word(map(Spoken, words))
    assert (found.word, found.status) == (word, status)


@pytest.mark.parametrize(
    ("tolerated", "counted", "word", "status"),
    [
        ("NO_BASELINE", ["INCONCLUSIVE"], "INCONCLUSIVE", 13),
        ("NO_BASELINE", ["PASS"], "NO_BASELINE", 0),
        ("NO_BASELINE", [], "NO_BASELINE", 0),
        ("INCONCLUSIVE", ["PASS", "IMPROVED"], "INCONCLUSIVE", 0),
        ("NO_BASELINE", ["REGRESSION"], "REGRESSION", 1),
    ],
)
def test_a_tolerated_word_is_said_where_nothing_worse_is(
    tolerated: str, counted: list[str], word: str, status: int
) -> None:
    """It never fails a run, and it never lets one call itself a PASS."""
    found = run_word([Spoken(tolerated, tolerated=True), *map(Spoken, counted)])
    assert (found.word, found.status) == (word, status)


def test_no_status_of_a_measured_build_is_one_of_pytests_own() -> None:
    """But that of a run that was stopped, which is pytest's."""
    assert {word for word, status in PYTEST_STATUS.items() if status in (2, 3, 4, 5)} == {"INTERRUPTED"}


def test_every_word_has_a_status_and_worse_words_do_not_have_better_ones() -> None:
    severity = [2, 15, 1, 14, 13, 0]
    places = [severity.index(PYTEST_STATUS[word]) for word in WORDS]
    assert places == sorted(places)


def test_a_policy_may_let_inconclusive_through_and_nothing_else() -> None:
    for verdict in Verdict:
        lenient = cli_exit_status(verdict, inconclusive_fails=False)
        assert lenient == (0 if verdict is Verdict.INCONCLUSIVE else cli_exit_status(verdict))


def test_json_never_holds_what_json_does_not_know() -> None:
    row = Finding("w", "tpot", "decode", True, Verdict.INCONCLUSIVE, "r", ratio=math.nan, mde=math.inf, p=-math.inf)
    text = json.dumps(GateResult(Verdict.INCONCLUSIVE, "r", Coverage(1, 0), (row,)).as_json(), allow_nan=False)
    finding = json.loads(text)["findings"][0]
    assert (finding["ratio"], finding["mde"], finding["p"]) == (None, None, None)
