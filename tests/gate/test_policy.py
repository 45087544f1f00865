"""The policy file: defaults, overrides, sources, and one clear line for every mistake."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from phasegate.gate.policy import Policy, Sourced
from phasegate.gate.policy_file import parse_policy
from phasegate.strict_yaml import SettingsError

DOCUMENTED = Path(__file__).resolve().parents[2] / "fixtures" / "policy.yaml"


def test_the_documented_file_states_the_defaults() -> None:
    policy = parse_policy(DOCUMENTED.read_text(encoding="utf-8"), "policy.yaml")
    assert dataclasses.replace(policy, sources={}) == Policy()


def test_the_documented_file_names_every_key() -> None:
    """A key that the file does not show is a key that nobody finds; the alphas of the reader are the proof."""
    from phasegate.gate import policy_file

    text = DOCUMENTED.read_text(encoding="utf-8")
    for key in (*policy_file._TOP_KEYS, *policy_file._SESSION_KEYS):
        assert f"{key}:" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alfa: 0.01", "p.yaml:1: unknown key 'alfa'; did you mean 'alpha'? allowed: alpha, tolerance"),
        ("alpha: 5", "p.yaml:1: alpha is 5; it must be a fraction above 0 and below 1"),
        ("alpha: yes", "p.yaml:1: alpha is True; it must be a fraction"),
        ("alpha: '0.1'", "p.yaml:1: alpha is '0.1'; it must be a fraction"),
        ("alpha: 0.1\nalpha: 0.2", "p.yaml:2: the key 'alpha' stands twice (first on line 1)"),
        ("tolerance:\n  prefill: 0.1\n  decod: 0.1", "p.yaml:3: unknown key 'decod'; did you mean 'decode'? allowed:"),
        ("tolerance:\n  decode: 5", "p.yaml:2: decode is 5; it must be a fraction"),
        ("tolerance: 0.1", "p.yaml:1: tolerance must be a mapping"),
        ("floor: {decode: 5}", "p.yaml:1: decode is 5; it must be a duration with its unit"),
        ("percentiles: [95]", "p.yaml:1: percentiles is [95]; it must be a percentile such as p50"),
        ("sessions:\n  first: 0", "p.yaml:2: first is 0; it must be a whole number of at least 1"),
        ("sessions: {first: 9}", "sessions.budget is 5; it must be at least sessions.first, which is 9"),
        ("inconclusive: pass", "p.yaml:1: inconclusive is 'pass'; it must be one of fail, pass-with-warning"),
        ("slos:\n  - ttft:95:500ms", "p.yaml:2: '95' is not a percentile; write p50, p95 or p99.9"),
        ("slos:\n  - ttft:p95:500", "p.yaml:2: '500' is not a duration"),
        ("slos:\n  - tttf:p95:1s", "p.yaml:2: 'tttf' in 'tttf:p95:1s' is not a latency; known: ttft"),
        ("slos:\n  - {workload: a}", "p.yaml:2: the key 'objective' is missing"),
        ("rules: 5", "p.yaml:1: rules is 5; it must be a list"),
        ("rules:\n  - {}\n  - {metric: tpott}", "p.yaml:3: metric is 'tpott'; it must be one of ttft"),
        ("rules:\n  - workload: a\n    tolerance: 20", "p.yaml:3: tolerance is 20; it must be a fraction"),
        ("metrics: {ttft: {}}", "p.yaml:1: the metric 'ttft' is built in"),
        ("metrics: {x: {better: up}}", "p.yaml:1: better is 'up'; it must be lower or higher"),
        ("compare_across: [gpu]", "p.yaml:1: compare_across is ['gpu']; it must be a list of keys from engine"),
        ("", "p.yaml: the file is empty"),
        ("a: [", "p.yaml:1: not readable as YAML"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_policy(text, "p.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_last_rule_that_matches_wins_and_says_where_it_stands() -> None:
    policy = parse_policy(
        "tolerance: {decode: 0.04}\n"
        "rules:\n"
        "  - {workload: chat, tolerance: 0.2, gate: never}\n"
        "  - {workload: 'chat*', metric: tpot, tolerance: 0.3}\n"
        "  - {phase: prefill, floor: 5ms}\n",
        "p.yaml",
    )
    tpot = policy.applied("chat[in=64,out=32]", "tpot", "decode")
    assert (tpot.tolerance, tpot.gate.value) == (Sourced(0.3, "p.yaml:4"), "never")
    assert tpot.floor == Sourced(10e-6, "default")
    other = policy.applied("rag", "tpot", "decode")
    assert (other.tolerance, other.gate) == (Sourced(0.04, "p.yaml:1"), Sourced("binding", "default"))
    assert policy.applied("rag", "ttft", "prefill").floor == Sourced(0.005, "p.yaml:5")


def test_the_absolute_floor_widens_the_tolerance_of_a_fast_metric() -> None:
    applied = Policy().applied("a", "ttft", "prefill")
    assert applied.effective_tolerance(1.0) == 0.10
    assert applied.effective_tolerance(0.001) == pytest.approx(0.2)
    assert applied.effective_source(0.001) == "floor, default"
    assert applied.effective_source(1.0) == "default"


def test_brackets_of_a_cell_stand_for_themselves_in_a_pattern() -> None:
    policy = parse_policy("rules: [{workload: 'chat[in=64*', tolerance: 0.3}]", "p.yaml")
    assert policy.applied("chat[in=64,out=8]", "ttft", "prefill").tolerance.value == 0.3
    assert policy.applied("chat[in=128,out=8]", "ttft", "prefill").tolerance.value == 0.1
