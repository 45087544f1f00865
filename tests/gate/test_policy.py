"""The policy file: defaults, overrides, sources, and one clear line for every mistake."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.gate.policy import Policy, Sourced
from phasegate.gate.policy_file import parse_policy

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
        ("tolerance: 0.1", "p.yaml:1: tolerance must be a mapping of keys to values, such as {decode: 5%}"),
        (
            "tolerance: {decode: 3}",
            "p.yaml:1: decode is 3; it must be a fraction such as 0.05 or a percentage such as 5%",
        ),
        ("tolerance: {decode: 0%}", "p.yaml:1: decode is '0%'; it must be a fraction"),
        ("tolerance: {decode: 5 percent}", "p.yaml:1: decode is '5 percent'; it must be a fraction"),
        ("tolerance: {decode: .inf}", "p.yaml:1: decode is inf; it must be a fraction"),
        ("fail-from: 0.02", "p.yaml:1: fail-from must be a mapping"),
        ("fail-from:\n  decode: -0.01", "p.yaml:2: decode is -0.01; it must be a fraction"),
        (
            "fail-from:\n  decode: 2.5",
            "p.yaml:2: fail-from.decode is 250.0 %; it must be at most tolerance.decode, which is",
        ),
        ("fail-from:\n  decode: half", "p.yaml:2: decode is 'half'; it must be a fraction"),
        ("fail-form: {decode: 1%}", "p.yaml:1: unknown key 'fail-form'; did you mean 'fail-from'?"),
        (
            "fail-from: {decode: 6%}",
            "p.yaml:1: fail-from.decode is 6.0 %; it must be at most tolerance.decode, which is 5.0 %: what fails ",
        ),
        (
            "tolerance: {prefill: 20%}\nfail-from:\n  prefill: 0.21",
            "p.yaml:3: fail-from.prefill is 21.0 %; it must be at most tolerance.prefill, which is 20.0 %",
        ),
        (
            "rules:\n  - workload: chat\n    tolerance: 8%\n    fail-from: 9%",
            "p.yaml:4: fail-from is 9.0 %; it must be at most the tolerance, which is 8.0 %",
        ),
        ("rules: [{metric: tpot, fail-from: 0.06}]", "p.yaml:1: fail-from is 6.0 %; it must be at most the tolerance"),
        ("fail-from: {decode: 1%}\nfail_from: {decode: 2%}", "p.yaml:2: the key 'fail-from' stands twice"),
        ("other-phase: 0.5", "p.yaml:1: other-phase is 0.5; it must be a number of at least 1, such as 3, or off"),
        ("other-phase: on", "p.yaml:1: other-phase is True; it must be a number of at least 1"),
        ("other-phase: never", "p.yaml:1: other-phase is 'never'; it must be a number of at least 1"),
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


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0.05", 0.05), ("5%", 0.05), ("2.5 %", 0.025), ("1", 1.0), ("1.5", 1.5), ("150%", 1.5), ("'150%'", 1.5),
     ("2.99", 2.99), ("400%", 4.0)],
)  # fmt: skip
def test_a_tolerance_may_be_a_fraction_or_in_per_cent_and_of_any_size(written: str, meant: float) -> None:
    for text in (f"tolerance: {{decode: {written}}}", f"rules: [{{phase: decode, tolerance: {written}}}]"):
        applied = parse_policy(text, "p.yaml").applied("a", "tpot", "decode")
        assert applied.tolerance.value == pytest.approx(meant)
        assert applied.effective_fail_from(1.0) == pytest.approx(meant / 2)


def test_fail_from_is_half_the_tolerance_until_it_is_set() -> None:
    assert Policy().applied("a", "tpot", "decode").effective_fail_from(1.0) == 0.025
    policy = parse_policy("tolerance: {decode: 8%}\nfail_from:\n  decode: 8%\n  prefill: 0\n", "p.yaml")
    assert policy.applied("a", "tpot", "decode").fail_from == Sourced(0.08, "p.yaml:3")
    assert policy.applied("a", "ttft", "prefill").effective_fail_from(1.0) == 0.0
    assert policy.applied("a", "e2el", "both").effective_fail_from(1.0) == 0.05


def test_a_rule_sets_what_fails_and_a_new_tolerance_goes_back_to_half_of_it() -> None:
    policy = parse_policy(
        "fail-from: {decode: 4%}\n"
        "rules:\n"
        "  - {workload: chat, fail-from: 1%}\n"
        "  - {workload: rag, tolerance: 20%}\n"
        "  - {workload: long, tolerance: 20%, fail-from: 15%}\n"
        "  - {workload: short, tolerance: 2%}\n"
        "  - {workload: s*, fail-from: 20%}\n",
        "p.yaml",
    )
    found = {name: policy.applied(name, "tpot", "decode") for name in ("chat", "rag", "long", "short", "plain")}
    sizes = {name: one.effective_fail_from(1.0) for name, one in found.items()}
    # The last rule meets a smaller tolerance in short, and is cut to it: what fails is never above what is found.
    assert sizes == pytest.approx({"chat": 0.01, "rag": 0.10, "long": 0.15, "short": 0.02, "plain": 0.04})
    assert found["chat"].fail_from.source == "p.yaml:3"


def test_the_other_phase_widens_both_sizes() -> None:
    applied = parse_policy("fail-from: {decode: 4%}", "p.yaml").applied("a", "tpot", "decode").times(3.0, "times 3")
    assert [applied.tolerance.value, applied.fail_from.value] == pytest.approx([0.15, 0.12])
    assert applied.tolerance.source == "default, times 3"


@pytest.mark.parametrize(("written", "meant"), [("off", None), ("'off'", None), ("1", 1.0), ("3", 3.0), ("2.5", 2.5)])
def test_the_other_phase_is_a_factor_or_off(written: str, meant: float | None) -> None:
    for key in ("other-phase", "other_phase"):
        assert parse_policy(f"{key}: {written}", "p.yaml").other_phase == meant


def test_a_file_written_before_these_keys_still_works() -> None:
    policy = parse_policy("tolerance: {decode: 0.04}\ngate: binding\nmax-error-rate: 0.1\n", "p.yaml")
    assert policy.applied("a", "tpot", "decode").effective_fail_from(1.0) == 0.02
    assert (policy.other_phase, policy.max_error_rate) == (3.0, 0.1)
