"""What may become a baseline, and what pinned baselines add to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from phasegate.core.session import Session
from phasegate.gate.acceptance import refusals
from phasegate.gate.judge import judge
from phasegate.gate.pinned import with_pinned
from phasegate.gate.policy import Policy
from phasegate.gate.verdict import Verdict
from phasegate.gate.window import choose_window
from tests.gate.test_judge import BASELINE, SAME, build
from tests.sessions import SERVER, sessions


def test_clean_sessions_may_be_recorded() -> None:
    assert refusals(SAME, Policy()) == ()


def test_nothing_may_not_be_recorded() -> None:
    assert refusals([], Policy()) == ("nothing was measured",)


def spoiled(change: Callable[[Session], Session]) -> list[Session]:
    return [*SAME[:-1], change(SAME[-1])]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: replace(one, disturbed="steal time"), "it was disturbed: steal time"),
        (lambda one: replace(one, measurements=()), "it measured nothing"),
        (lambda one: replace(one, measurements=one.measurements[:3]), "did not measure chat[in=64,out=32] tpot"),
        (
            lambda one: replace(one, measurements=tuple(replace(item, failed=2) for item in one.measurements)),
            "requests of the baseline failed",
        ),
        (
            lambda one: replace(one, measurements=tuple(replace(item, samples=(-1.0,)) for item in one.measurements)),
            "holds -1.0",
        ),
        (lambda one: replace(one, server={**SERVER, "hardware": "gpu"}), "different servers: hardware: cpu-4 -> gpu"),
    ],
)
def test_one_bad_session_is_not_carried_in_by_good_ones(change: Callable[[Session], Session], said: str) -> None:
    found = refusals(spoiled(change), Policy())
    assert any(said in line for line in found)


def test_slow_creeping_is_caught_by_a_pinned_baseline() -> None:
    """Nothing changed since the last update, and 20 % since the release: only the pinned baseline knows."""
    release = build(11, 10, {("chat", "tpot"): 1 / 1.2}, start=500)
    rolling, pinned = judge(BASELINE, SAME, Policy()), judge(release, SAME, Policy())
    assert (rolling.verdict, pinned.verdict) == (Verdict.PASS, Verdict.REGRESSION)
    both = with_pinned(rolling, {"v1.0": pinned})
    assert both.verdict is Verdict.REGRESSION
    assert both.reason.startswith("against the pinned baseline v1.0: chat")
    assert both.lever is not None


def test_what_a_pinned_baseline_cannot_compare_is_a_remark() -> None:
    other = [replace(one, server={**SERVER, "hardware": "gpu"}) for one in BASELINE]
    both = with_pinned(judge(BASELINE, SAME, Policy()), {"v1.0": judge(other, SAME, Policy())})
    assert both.verdict is Verdict.PASS
    assert any(line.startswith("NOT_COMPARABLE against the pinned baseline v1.0") for line in both.warnings)


def test_a_planned_sequence_asks_for_more_of_what_is_open_only() -> None:
    """After two sessions, the workload that looks slower needs more, and the one that is plainly harmless does not."""
    slower = build(3, 2, {("chat", "tpot"): 1.04, ("long", "ttft"): 0.97, ("long", "tpot"): 0.97}, start=100)
    result = judge(BASELINE, slower, Policy(), planned=True)
    assert result.needs_more == ("chat[in=64,out=32]",)
    assert judge(BASELINE, slower, Policy()).needs_more == ()


def test_the_window_is_cut_at_a_change_of_level_and_not_by_noise() -> None:
    steady = sessions({("chat", "tpot"): [0.02, 0.0203, 0.0198, 0.0201, 0.0202, 0.0199, 0.0204, 0.0197]})
    assert len(choose_window(steady, Policy()).sessions) == 8
    stepped = sessions({("chat", "tpot"): [0.03, 0.0303, 0.0298, 0.0301, 0.0202, 0.0199, 0.0204, 0.0197]})
    window = choose_window(stepped, Policy())
    assert [one.session_id for one in window.sessions] == [one.session_id for one in stepped[4:]]
    assert window.warning is not None
    assert "4 older ones stand at another level (chat tpot changed by -33" in window.warning
    small = sessions({("chat", "tpot"): [0.0206, 0.0206, 0.0206, 0.0206, 0.0202, 0.0202, 0.0202, 0.0202]})
    assert len(choose_window(small, Policy()).sessions) == 8


def test_the_window_looks_at_the_newest_only() -> None:
    many = sessions({("chat", "tpot"): [0.02] * 30})
    assert [one.session_id for one in choose_window(many, Policy(), 20).sessions] == [
        one.session_id for one in many[10:]
    ]
    assert len(choose_window(many, Policy()).sessions) == 30
