"""What the gate remarks on what it was handed, beside its verdict."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from phasegate.core.session import Session
from phasegate.gate.comparable import say_differences
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy
from phasegate.gate.policy_file import parse_policy
from phasegate.gate.verdict import Verdict
from tests.gate.test_judge import BASELINE, SAME, build

SAID = "matches nothing that was compared"


def warnings(policy: Policy, candidate: Sequence[Session] = SAME) -> list[str]:
    return list(judge(BASELINE, candidate, policy).warnings)


@pytest.mark.parametrize("pattern", ["chta", "chat[in=65*", "sentinel"])
def test_a_rule_that_matches_no_workload_is_named_with_its_line(pattern: str) -> None:
    policy = parse_policy(f"rules:\n  - tolerance: 0.2\n    workload: '{pattern}'\n", "p.yaml")
    assert [line for line in warnings(policy) if SAID in line] == [f"p.yaml:3: the rule for {pattern!r} {SAID}"]


@pytest.mark.parametrize("pattern", ["chat", "ch*", "chat[in=64*", "*"])
def test_a_rule_that_matches_something_is_not_remarked(pattern: str) -> None:
    policy = parse_policy(f"rules:\n  - tolerance: 0.2\n    workload: '{pattern}'\n", "p.yaml")
    assert not any(SAID in line for line in warnings(policy))


def test_a_remark_on_a_rule_changes_no_verdict() -> None:
    policy = parse_policy("rules:\n  - {workload: nothing, gate: never}\n", "p.yaml")
    assert judge(BASELINE, SAME, policy).verdict is Verdict.PASS


def test_sessions_on_both_sides_are_counted() -> None:
    mixed = [*BASELINE[-2:], *SAME[:3]]
    said = "2 of 5 sessions of the run are in the baseline too"
    assert any(line.startswith(said) for line in warnings(Policy(), mixed))
    assert any("both sides hold the same sessions" in line for line in warnings(Policy(), BASELINE))


def test_equal_names_of_different_sessions_are_no_remark() -> None:
    """Tables number their sessions, and blocks are paired by name."""
    again = build(9, 5)
    assert again[0].session_id == BASELINE[0].session_id
    assert not any("the same sessions" in line or "baseline too" in line for line in warnings(Policy(), again))


def test_of_many_differences_the_telling_ones_are_said() -> None:
    many: dict[str, tuple[str | None, str | None]] = {f"settings.{letter}": (None, "1") for letter in "abcde"}
    many["settings.z"] = ("1", "2")
    said = "settings.z: 1 -> 2; settings.a: unknown -> 1; settings.b: unknown -> 1; settings.c: unknown -> 1"
    assert say_differences(many) == f"{said} and 2 more"
    del many["settings.d"], many["settings.e"]
    assert say_differences(many) == said


def test_paired_sides_of_which_one_tells_nothing_are_remarked_in_few_words() -> None:
    blocks = [Session(one.session_id, one.recorded_at, one.measurements) for one in SAME]
    result = judge(BASELINE[:5], blocks, Policy(), paired=True)
    assert "the run does not say which server it measured" in result.warnings
