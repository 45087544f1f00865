"""A regression is not the server's where the client itself became slower than it was for the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from phasegate.core.session import Session
from phasegate.gate.client_growth import OWN_ERROR, tells_own_error
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import GateResult, Verdict
from tests.sessions import sessions

OLD = [0.0500, 0.0501, 0.0499, 0.0500, 0.0502, 0.0498, 0.0500, 0.0501]
NEW = [0.0650, 0.0651, 0.0649, 0.0650, 0.0652]
"""TTFT in seconds: 50 ms, and 30 % more; the policy allows 10 %, which is 5 ms."""


def with_client(found: Sequence[Session], added: float | None, **changes: Any) -> list[Session]:
    """The sessions of a client that adds so much to TTFT; None: they do not tell."""
    if added is None:
        return list(found)
    own = {"concurrency": 1, "requests": 12, "lost": 0, "ttft_p50": added, "ttft_p99": added, "tpot_p50": 0.001,
           "span_p50": 0.0001, "setup": "one process", **changes}  # fmt: skip
    return [replace(one, client={**one.client, OWN_ERROR: [{**own, "concurrency": 16}, own]}) for one in found]


def judged(before: float | None, now: float | None, *, metric: str = "ttft", paired: bool = False) -> GateResult:
    levels = ("w[in=64,out=8]", metric)
    old, new = sessions({levels: OLD[:5] if paired else OLD}), sessions({levels: NEW})
    return judge(with_client(old, before), with_client(new, now), Policy(alpha=0.05), paired=paired)


def test_a_client_that_was_as_slow_before_changes_nothing() -> None:
    assert judged(0.0004, 0.0005).verdict is Verdict.REGRESSION
    assert judged(0.0004, 0.0034).verdict is Verdict.REGRESSION, "3 ms of 15 do not explain it"


def test_a_client_that_grew_by_more_than_a_quarter_of_the_worsening_judges_nobody() -> None:
    """6 ms more, of 15 that were found. The line has both figures, and the advice says what to do."""
    result = judged(0.0004, 0.0064)
    assert result.verdict is Verdict.INVALID_RUN
    (row,) = result.findings
    assert "adds 6.40 ms to ttft and added 0.40 ms for the baseline" in row.reason
    assert "more than 25 % of the 15.0 ms in question" in row.reason
    assert "core of its own" in row.advice


@pytest.mark.parametrize(("before", "now"), [(None, 0.1), (0.0004, None), (None, None), (0.1, 0.0004)])
def test_a_regression_stands_where_nothing_shows_that_the_client_grew(before: float | None, now: float | None) -> None:
    assert judged(before, now).verdict is Verdict.REGRESSION


def test_both_sides_of_one_sitting_have_the_same_client() -> None:
    assert judged(0.0004, 0.1, paired=True).verdict is Verdict.REGRESSION


def test_time_per_token_is_not_moved_by_a_client_that_is_late_throughout() -> None:
    assert judged(0.0004, 0.1, metric="tpot").verdict is Verdict.REGRESSION


@pytest.mark.parametrize(
    "listed", [None, "none", [], [3], [{"concurrency": 1}], [{"concurrency": 1, "ttft_p50": None}]]
)
def test_facts_that_tell_nothing_are_no_fault(listed: Any) -> None:
    """Lost requests make an error infinite, which files hold as null."""
    (one,) = sessions({("w", "ttft"): [0.05]}, client={OWN_ERROR: listed})
    assert not tells_own_error([one])
