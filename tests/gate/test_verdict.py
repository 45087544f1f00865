"""Words, their order, and the exit statuses they give."""

from __future__ import annotations

import itertools
import json
import math

import pytest

from phasegate.gate.exit_status import CLI_STATUS, PYTEST_STATUS, cli_exit_status, pytest_exit_status
from phasegate.gate.verdict import Coverage, Finding, GateResult, Verdict, worst


def test_every_verdict_has_a_status_in_both_tables() -> None:
    assert set(CLI_STATUS) == set(Verdict)
    assert {verdict.value for verdict in Verdict} | {"FAIL"} == set(PYTEST_STATUS)


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
    ("words", "failed", "status"),
    [
        ([], 0, 0),
        (["PASS", "IMPROVED"], 0, 0),
        (["PASS", "REGRESSION", "INCONCLUSIVE", "NO_BASELINE"], 3, 1),
        (["SLO_BREACH"], 1, 1),
        (["INCONCLUSIVE"], 1, 13),
        (["INCONCLUSIVE", "NOT_COMPARABLE"], 2, 14),
        (["REGRESSION", "INVALID_RUN"], 2, 15),
        (["INVALID_BASELINE"], 1, 15),
        (["INCONCLUSIVE"], 2, 1),
        ([], 1, 1),
    ],
)
def test_the_worst_word_decides_pytests_status(words: list[str], failed: int, status: int) -> None:
    assert pytest_exit_status(words, failed) == status


def test_no_status_of_a_measured_build_is_one_of_pytests_own() -> None:
    assert not set(PYTEST_STATUS.values()) & {2, 3, 4, 5}


def test_a_policy_may_let_inconclusive_through_and_nothing_else() -> None:
    for verdict in Verdict:
        lenient = cli_exit_status(verdict, inconclusive_fails=False)
        assert lenient == (0 if verdict is Verdict.INCONCLUSIVE else cli_exit_status(verdict))


def test_json_never_holds_what_json_does_not_know() -> None:
    row = Finding("w", "tpot", "decode", True, Verdict.INCONCLUSIVE, "r", ratio=math.nan, mde=math.inf, p=-math.inf)
    text = json.dumps(GateResult(Verdict.INCONCLUSIVE, "r", Coverage(1, 0), (row,)).as_json(), allow_nan=False)
    finding = json.loads(text)["findings"][0]
    assert (finding["ratio"], finding["mde"], finding["p"]) == (None, None, None)
