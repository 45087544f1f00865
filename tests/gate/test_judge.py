"""The gate as a whole: what is refused before statistics, what gates, what warns, and how a build ends."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.metric import Better
from phasegate.core.session import Measurement, Session
from phasegate.gate.facts import MetricFacts
from phasegate.gate.judge import judge
from phasegate.gate.policy import Policy, Rule
from phasegate.gate.slo import Objective, parse_objective
from phasegate.gate.verdict import Finding, GateResult, Verdict
from tests.sessions import SERVER, measurement, session, sessions

LEVELS = {("long", "ttft"): 0.4, ("long", "tpot"): 0.005, ("chat", "ttft"): 0.05, ("chat", "tpot"): 0.02}
"""``long`` is bound by prefill, ``chat`` by decode (32 output tokens each)."""


def build(
    seed: int, count: int, change: Mapping[tuple[str, str], float] | None = None, start: int = 0, **changes: Any
) -> list[Session]:
    """Sessions with 1 % between them and 2 % within: (workload, metric) -> factor changes a level."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        rows = []
        for (workload, metric), level in LEVELS.items():
            here = level * (change or {}).get((workload, metric), 1.0) * math.exp(rng.normal(0, 0.01))
            name = f"{workload}[in=64,out=32]"
            rows.append(measurement(name, metric, (here * np.exp(rng.normal(0, 0.02, 20))).tolist()))
        made.append(session(start + number, *rows, **changes))
    return made


BASELINE = build(1, 20)
SAME = build(4, 5, start=100)


def row(result: GateResult, workload: str, metric: str) -> Finding:
    (found,) = [one for one in result.findings if one.workload.startswith(workload) and one.metric == metric]
    return found


def objectives(*texts: str) -> tuple[Objective, ...]:
    return tuple(parse_objective(text, source="x") for text in texts)


def each(change: Callable[[Measurement], Measurement], made: Sequence[Session]) -> list[Session]:
    return [replace(one, measurements=tuple(change(item) for item in one.measurements)) for one in made]


def test_two_equal_servers_pass_and_the_reason_counts_what_was_compared() -> None:
    result = judge(BASELINE, SAME, Policy())
    assert result.verdict is Verdict.PASS, result.reason
    assert (result.coverage.expected, result.coverage.compared) == (4, 4)
    assert result.reason == "4 of 4 gated comparisons within their limits"
    for finding in result.findings:
        assert finding.mde is not None
        assert finding.reason
        assert finding.tolerance_source


@pytest.mark.parametrize(
    ("where", "phase"), [(("chat", "tpot"), "decode"), (("long", "ttft"), "prefill")], ids=["decode", "prefill"]
)
def test_a_slower_binding_phase_is_a_regression_of_that_phase(where: tuple[str, str], phase: str) -> None:
    result = judge(BASELINE, build(3, 5, {where: 1.2}, start=100), Policy())
    assert result.verdict is Verdict.REGRESSION
    assert {one.phase for one in result.findings if one.gated and one.verdict is Verdict.REGRESSION} == {phase}
    assert result.lever is not None
    assert phase in result.lever
    said = next(iter(result.attributions.values()))
    assert ("prefill +" if phase == "prefill" else "decode +") in said


def test_the_phase_that_does_not_bind_gates_with_three_times_its_tolerance() -> None:
    """TTFT of chat may fail from 15 %: 30 % fails, 10 % is proven and said, and unchanged it is silent."""
    result = judge(BASELINE, build(3, 5, {("chat", "ttft"): 1.3}, start=100), Policy())
    found = row(result, "chat", "ttft")
    assert (result.verdict, found.verdict, found.gated) == (Verdict.REGRESSION, Verdict.REGRESSION, True)
    assert [found.tolerance, found.fails_from] == pytest.approx([0.30, 0.15])
    assert found.tolerance_source == "default, times 3 since decode binds"
    assert "fails from 15.0 %" in result.reason
    result = judge(BASELINE, build(4, 5, {("chat", "ttft"): 1.1}, start=100), Policy())
    assert row(result, "chat", "ttft").verdict is Verdict.PASS
    assert result.verdict is Verdict.PASS
    assert any(
        line.startswith("slower, but by too little to fail: chat[in=64,out=32] ttft") for line in result.warnings
    )
    assert not judge(BASELINE, SAME, Policy()).warnings


@pytest.mark.parametrize(("times", "verdict"), [(None, Verdict.PASS), (1.0, Verdict.REGRESSION), (9.0, Verdict.PASS)])
def test_a_policy_says_with_how_many_times_its_tolerance_the_other_phase_gates(
    times: float | None, verdict: Verdict
) -> None:
    result = judge(BASELINE, build(4, 5, {("chat", "ttft"): 1.3}, start=100), Policy(other_phase=times))
    assert result.verdict is verdict
    found = row(result, "chat", "ttft")
    assert found.gated == (times is not None)
    if times is None:
        assert found.verdict is Verdict.REGRESSION
        assert found.fails_from is None
        assert any(line.startswith("not gated, but slower: chat") for line in result.warnings)
    else:
        assert found.tolerance == pytest.approx(0.1 * times)


def test_a_trade_names_both_phases_in_the_sentence_of_the_build() -> None:
    traded = judge(BASELINE, build(4, 5, {("chat", "ttft"): 1.2, ("chat", "tpot"): 0.8}, start=100), Policy())
    assert traded.verdict is Verdict.REGRESSION
    assert re.search(r"This is a trade: chat\[in=64,out=32\] ttft \+[12]\d\.\d %, tpot -[12]\d\.\d %\.", traded.reason)
    small = judge(BASELINE, build(4, 5, {("chat", "ttft"): 1.1, ("chat", "tpot"): 0.8}, start=100), Policy())
    assert small.verdict is Verdict.PASS
    assert "gated comparisons within their limits; a trade: chat[in=64,out=32] ttft +" in small.reason
    other_way = judge(BASELINE, build(4, 5, {("chat", "ttft"): 0.8, ("chat", "tpot"): 1.2}, start=100), Policy())
    assert "This is a trade: chat[in=64,out=32] tpot +" in other_way.reason
    for change in ({("chat", "tpot"): 0.8}, {("chat", "tpot"): 1.2}, {("chat", "tpot"): 0.8, ("long", "ttft"): 1.2}):
        assert "trade" not in judge(BASELINE, build(4, 5, change, start=100), Policy()).reason


def test_an_undecided_build_names_the_row_that_needs_most_and_what_others_need_besides() -> None:
    """The second row needs more than the first; the sentence is not that of the row that happens to come first."""
    level = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99]
    wild = [1.0, 1.06, 0.94, 1.12, 0.88, 1.0, 1.06, 0.94]
    base = {("a", "tpot"): [0.02 * one for one in level], ("b", "ttft"): [0.5 * one for one in wild]}
    new = {key: values[:2] for key, values in base.items()}
    result = judge(sessions(base), sessions(new), Policy())
    assert result.verdict is Verdict.INCONCLUSIVE
    needs = {one.workload: one.sessions_needed for one in result.findings if one.gated}
    assert needs["a"] is not None
    assert needs["b"] is None or needs["b"] > needs["a"]
    assert result.reason.startswith("b ttft: ")
    if needs["b"] is None:
        assert f"Others need up to {needs['a']} more candidate session" in result.reason


def test_a_policy_may_gate_both_phases() -> None:
    slower = build(3, 5, {("chat", "ttft"): 1.3}, start=100)
    assert judge(BASELINE, slower, Policy(gate="always")).verdict is Verdict.REGRESSION
    silent = Policy(rules=(Rule(gate="never"),))
    result = judge(BASELINE, slower, silent)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "no comparison gates this build" in result.reason


def test_a_faster_server_is_improved_row_by_row() -> None:
    faster = judge(BASELINE, build(3, 5, {("chat", "tpot"): 0.7, ("long", "ttft"): 0.7}, start=100), Policy())
    assert faster.verdict is Verdict.IMPROVED
    mixed = judge(BASELINE, build(3, 5, {("chat", "tpot"): 0.7, ("long", "ttft"): 1.4}, start=100), Policy())
    assert mixed.verdict is Verdict.REGRESSION
    assert row(mixed, "chat", "tpot").verdict is Verdict.IMPROVED


def test_the_binding_phase_follows_headroom_where_objectives_are_given() -> None:
    """ttft has 0.1 s for 0.05 s, tpot 21 ms for 20 ms: decode has less headroom. And the other way round."""
    tight_decode = Policy(
        slos=(parse_objective("ttft:p50:900ms", source="x"), parse_objective("tpot:p50:21ms", source="x"))
    )
    result = judge(BASELINE, SAME, tight_decode)
    assert "decode binds" in result.binding["chat[in=64,out=32]"]
    tight_prefill = Policy(
        slos=(parse_objective("ttft:p50:410ms", source="x"), parse_objective("tpot:p50:1s", source="x"))
    )
    result = judge(BASELINE, SAME, tight_prefill)
    assert "prefill binds" in result.binding["chat[in=64,out=32]"]


def test_an_objective_on_one_phase_never_releases_the_other() -> None:
    """Decode takes 93 % of a chat request; a promise about prefill makes prefill gate too, not instead."""
    policy = Policy(slos=objectives("ttft:p50:9s"))
    assert "both phases gate" in judge(BASELINE, SAME, policy).binding["chat[in=64,out=32]"]
    assert judge(BASELINE, build(3, 5, {("chat", "tpot"): 1.2}, start=100), policy).verdict is Verdict.REGRESSION
    policy = Policy(slos=objectives("tpot:p50:9s"))
    assert judge(BASELINE, SAME, policy).binding["chat[in=64,out=32]"].startswith("decode binds")


def test_the_candidate_never_releases_what_binds() -> None:
    """A candidate whose prefill exploded would be bound by it; decode, which bound the baseline, gates still."""
    result = judge(BASELINE, build(3, 5, {("chat", "ttft"): 100.0}, start=100), Policy())
    assert row(result, "chat", "tpot").gated
    assert any("flipped from decode to prefill" in line for line in result.warnings)


def test_everything_slower_alike_is_labelled_host_or_client() -> None:
    result = judge(BASELINE, build(3, 5, dict.fromkeys(LEVELS, 1.3), start=100), Policy())
    assert result.verdict is Verdict.REGRESSION
    assert any("the host or the client" in line and "measure again" in line for line in result.warnings)
    one = judge(BASELINE, build(3, 5, {("chat", "tpot"): 1.3}, start=100), Policy())
    assert not any("the host or the client" in line for line in one.warnings)


def test_a_sentinel_that_moved_withdraws_the_verdict() -> None:
    frozen = {("sentinel", "e2el"): [0.005] * 20}
    base = [
        replace(one, measurements=one.measurements + more.measurements)
        for one, more in zip(BASELINE, sessions(frozen), strict=True)
    ]
    slow = build(3, 5, dict.fromkeys(LEVELS, 1.5), start=100)
    moved = [replace(one, measurements=(*one.measurements, measurement("sentinel", "e2el", [0.0075]))) for one in slow]
    result = judge(base, moved, Policy())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the frozen reference itself moved by +50.0 %, so the host changed" in result.reason
    assert {one.workload for one in result.findings} == {"long[in=64,out=32]", "chat[in=64,out=32]"}


@pytest.mark.parametrize(
    ("candidate", "verdict", "said"),
    [
        ([], Verdict.INVALID_RUN, "measured nothing"),
        ([session(100)], Verdict.INVALID_RUN, "measured nothing"),
        (each(lambda one: replace(one, failed=2), SAME), Verdict.INVALID_RUN, "10 of 100 requests of the run failed"),
        (each(lambda one: replace(one, samples=()), SAME), Verdict.INVALID_RUN, "no usable value"),
        (each(lambda one: replace(one, samples=(float("nan"),)), SAME), Verdict.INVALID_RUN, "nan, which is no"),
        (
            each(lambda one: replace(one, invalid=15, flags=("cached_prompt",)), SAME),
            Verdict.INVALID_RUN,
            "unfit for a latency sample (cached_prompt)",
        ),
        (each(lambda one: replace(one, workload_digest="other"), SAME), Verdict.NOT_COMPARABLE, "workload digest"),
        (
            each(lambda one: replace(one, token_source=one.token_source and "logprobs"), SAME),
            Verdict.NOT_COMPARABLE,
            "counted by usage in the baseline and by logprobs here",
        ),
        (
            each(lambda one: replace(one, samples=tuple(1000 * value for value in one.samples)), SAME),
            Verdict.NOT_COMPARABLE,
            "one side is in milliseconds",
        ),
        (
            each(lambda one: replace(one, samples=tuple(value / 50 for value in one.samples)), SAME),
            Verdict.INVALID_RUN,
            "fell to 2.0 % of its baseline",
        ),
        (
            [replace(one, server={**SERVER, "hardware": "gpu"}) for one in SAME],
            Verdict.NOT_COMPARABLE,
            "hardware: cpu-4 -> gpu",
        ),
        (
            [replace(one, server={**SERVER, "settings": {"slots": 1, "ubatch": 64}}) for one in SAME],
            Verdict.NOT_COMPARABLE,
            "settings.ubatch: 512 -> 64",
        ),
        ([replace(one, host="host-b") for one in SAME], Verdict.NOT_COMPARABLE, "the candidate ran on host host-b"),
        ([replace(one, disturbed="12 % foreign CPU") for one in SAME], Verdict.INVALID_RUN, "12 % foreign CPU"),
        (
            each(lambda one: replace(one, workload=one.workload.replace("chat", "talk")), SAME),
            Verdict.INVALID_RUN,
            "renamed; talk[in=64,out=32] sends the same",
        ),
        ([replace(one, measurements=one.measurements[:2]) for one in SAME], Verdict.INVALID_RUN, "crashed, left out"),
        ([replace(one, measurements=one.measurements[:3]) for one in SAME], Verdict.INVALID_RUN, "though it measured"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_gets_its_own_word_before_any_statistics(
    candidate: list[Session], verdict: Verdict, said: str
) -> None:
    result = judge(BASELINE, candidate, Policy())
    assert result.verdict is verdict, result.reason
    assert said in " ".join([result.reason, *(one.reason for one in result.findings)])
    assert result.coverage.expected == 4


def test_another_engine_version_is_what_is_under_test() -> None:
    assert judge(
        BASELINE, [replace(one, server={**SERVER, "engine_version": "b2"}) for one in SAME], Policy()
    ).verdict.green


def test_a_deliberate_change_of_settings_can_be_judged() -> None:
    changed = [replace(one, server={**SERVER, "settings": {"slots": 1, "ubatch": 64}}) for one in SAME]
    assert judge(BASELINE, changed, Policy(compare_across=("settings.ubatch",))).verdict.green
    assert judge(BASELINE, changed, Policy(compare_across=("settings",))).verdict.green
    assert judge(BASELINE, changed, Policy(compare_across=("settings.slots",))).verdict is Verdict.NOT_COMPARABLE


def test_a_new_host_is_judged_where_the_baseline_spans_several() -> None:
    spread = [replace(one, host=f"host-{index % 2}") for index, one in enumerate(BASELINE)]
    assert judge(spread, [replace(one, host="host-new") for one in SAME], Policy()).verdict.green


def test_a_disturbed_session_is_left_out_and_named() -> None:
    wild = replace(build(9, 1, dict.fromkeys(LEVELS, 3.0), start=300)[0], disturbed="steal time")
    result = judge(BASELINE, [*SAME, wild], Policy())
    assert result.verdict is Verdict.PASS
    assert any("is left out: steal time" in line for line in result.warnings)


def test_a_broken_baseline_is_not_the_candidates_fault() -> None:
    broken = each(lambda one: replace(one, failed=5), BASELINE)
    assert judge(broken, SAME, Policy()).verdict is Verdict.INVALID_BASELINE


def test_no_baseline_says_where_it_looked_and_still_judges_objectives() -> None:
    result = judge([], SAME, Policy())
    assert result.verdict is Verdict.NO_BASELINE
    assert "record one with" in result.reason
    breach = judge([], SAME, Policy(slos=(parse_objective("ttft:p95:1ms", source="x"),)))
    assert breach.verdict is Verdict.SLO_BREACH


def test_a_new_workload_is_reported_apart_and_the_others_are_judged() -> None:
    more = [replace(one, measurements=(*one.measurements, measurement("new", "ttft", [0.1]))) for one in SAME]
    result = judge(BASELINE, more, Policy())
    assert result.verdict is Verdict.NO_BASELINE
    assert row(result, "new", "ttft").verdict is Verdict.NO_BASELINE
    assert row(result, "chat", "tpot").verdict is Verdict.PASS


def test_an_objective_that_speaks_of_nothing_measured_is_not_kept() -> None:
    policy = Policy(slos=(parse_objective("ttft:p95:1s", source="p.yaml:3", workload="chta"),))
    result = judge(BASELINE, SAME, policy)
    assert result.verdict is Verdict.INVALID_RUN
    assert "p.yaml:3" in result.reason


def test_one_baseline_session_never_passes_and_says_what_is_needed() -> None:
    result = judge(BASELINE[:1], SAME, Policy())
    assert result.verdict is Verdict.INCONCLUSIVE
    for one in result.findings:
        assert "a baseline of one session shows no variance" in one.reason
        assert "compare both servers side by side" in one.reason


def test_one_candidate_session_never_passes() -> None:
    assert judge(BASELINE, SAME[:1], Policy()).verdict is Verdict.INCONCLUSIVE


def test_a_metric_that_nobody_declared_is_named() -> None:
    more = each(lambda one: one, SAME)
    more = [replace(one, measurements=(*one.measurements, measurement("chat", "odd", [1.0]))) for one in more]
    assert any("'odd' is not judged" in line for line in judge(BASELINE, more, Policy()).warnings)


def test_a_noisy_comparison_is_inconclusive_and_says_what_it_would_have_found() -> None:
    wild = sessions({("chat", "tpot"): [0.017, 0.02, 0.024, 0.018, 0.02, 0.021]})
    result = judge(wild[:3], wild[3:], Policy())
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "would have been found, above the tolerance of 5.0 %" in result.reason


def test_a_percentile_gates_beside_the_median_only_with_enough_values() -> None:
    policy = Policy(percentiles=(50.0, 95.0))
    result = judge(BASELINE, SAME, policy)
    assert row(result, "chat", "tpot:p95").gated
    thin = each(lambda one: replace(one, samples=one.samples[:10]), BASELINE)
    result = judge(thin, SAME, policy)
    found = row(result, "chat", "tpot:p95")
    assert (found.verdict, found.gated) == (Verdict.INCONCLUSIVE, False)
    assert "p95 needs 20 values" in found.reason
    assert result.verdict is Verdict.PASS


def test_paired_blocks_are_judged_without_host_or_fingerprint() -> None:
    other = [replace(one, server={**SERVER, "settings": {"slots": 2}}, host="host-b") for one in SAME]
    result = judge(BASELINE[:5], other, Policy(gate="always"), paired=True)
    assert result.verdict not in (Verdict.NOT_COMPARABLE, Verdict.REGRESSION)
    assert any("settings.slots: 1 -> 2" in line for line in result.warnings)


def test_a_paired_slowdown_is_found() -> None:
    slower = build(7, 8, {("chat", "tpot"): 1.3}, start=100)
    assert judge(BASELINE[:8], slower, Policy(), paired=True).verdict is Verdict.REGRESSION


@settings(max_examples=15, deadline=None)
@given(st.floats(0.6, 1.6), st.integers(0, 1000))
def test_swapping_the_sides_turns_worse_into_not_worse(factor: float, seed: int) -> None:
    one, two = build(seed, 8), build(seed + 5000, 8, dict.fromkeys(LEVELS, factor), start=100)
    there, back = judge(one, two, Policy()), judge(two, one, Policy())
    for finding in there.findings:
        other = next(o for o in back.findings if (o.workload, o.metric) == (finding.workload, finding.metric))
        assert finding.ratio is not None
        assert other.ratio is not None
        assert finding.ratio * other.ratio == pytest.approx(1.0, rel=0.05)
        if finding.verdict is Verdict.REGRESSION:
            assert other.verdict is not Verdict.REGRESSION


@settings(max_examples=15, deadline=None)
@given(st.floats(0.5, 20.0), st.floats(0.8, 1.3), st.integers(0, 1000))
def test_scaling_both_sides_changes_nothing(scale: float, factor: float, seed: int) -> None:
    """A slower clock on both sides is no change of the server. Floors are spans, so they are switched off."""
    policy = Policy(floor={"prefill": 0.0, "decode": 0.0, "both": 0.0})
    one, two = build(seed, 6), build(seed + 5000, 4, dict.fromkeys(LEVELS, factor), start=100)
    scaled = [each(lambda m: replace(m, samples=tuple(scale * v for v in m.samples)), side) for side in (one, two)]
    plain, large = judge(one, two, policy), judge(scaled[0], scaled[1], policy)
    assert plain.verdict is large.verdict
    for left, right in zip(plain.findings, large.findings, strict=True):
        assert (left.workload, left.metric, left.verdict) == (right.workload, right.metric, right.verdict)
        assert left.ratio == pytest.approx(right.ratio)
        assert left.mde == pytest.approx(right.mde)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.7, 1.4), st.integers(0, 1000), st.integers(0, 3), st.integers(0, 12))
def test_one_more_failed_request_never_improves_a_verdict(factor: float, seed: int, where: int, failed: int) -> None:
    policy = Policy(slos=(parse_objective("ttft:p90:1s", source="x"),))
    one, two = build(seed, 6), build(seed + 5000, 3, dict.fromkeys(LEVELS, factor), start=100)

    def fail(made: list[Session], more: int) -> list[Session]:
        first = made[0]
        rows = list(first.measurements)
        rows[where] = replace(rows[where], failed=failed + more, requests=20 + failed + more)
        return [replace(first, measurements=tuple(rows)), *made[1:]]

    before, after = judge(one, fail(two, 0), policy), judge(one, fail(two, 1), policy)
    assert after.verdict.badness >= before.verdict.badness


def test_a_phase_that_does_not_bind_gates_where_it_makes_the_whole_request_too_long() -> None:
    """chat takes 50 ms to its first token and 620 ms to decode: a first token 10 times as late is felt."""
    result = judge(BASELINE, build(3, 5, {("chat", "ttft"): 10.0}, start=100), Policy())
    found = row(result, "chat", "ttft")
    assert result.verdict is Verdict.REGRESSION
    assert (found.gated, found.verdict) == (True, Verdict.REGRESSION)
    assert any("a request takes" in line for line in result.attributions.values())
    assert result.lever is not None
    assert "prefill" in result.lever


def test_a_phase_that_does_not_bind_stays_a_warning_where_a_rule_says_never() -> None:
    rules = (Rule(workload="chat", metric="ttft", gate="never"),)
    result = judge(BASELINE, build(3, 5, {("chat", "ttft"): 10.0}, start=100), Policy(rules=rules))
    assert result.verdict is Verdict.PASS
    assert any("not gated, but slower" in line for line in result.warnings)


def test_the_two_values_of_a_row_give_the_change_beside_them() -> None:
    """Also where a session stands far off, so that the plain medians would say something else."""
    candidate = build(3, 5, {("chat", "tpot"): 1.02}, start=100)
    far = [replace(one, samples=tuple(2 * value for value in one.samples)) for one in candidate[0].measurements]
    result = judge(BASELINE, [replace(candidate[0], measurements=tuple(far)), *candidate[1:]], Policy())
    for finding in result.findings:
        assert finding.ratio is not None
        assert finding.baseline_value is not None
        assert finding.candidate_value == pytest.approx(finding.baseline_value * finding.ratio)


def test_a_thousandfold_change_asks_for_the_unit() -> None:
    result = judge(BASELINE, build(3, 5, {("chat", "tpot"): 1000.0}, start=100), Policy())
    found = row(result, "chat", "tpot")
    assert found.verdict is Verdict.REGRESSION
    assert "look whether the values are in seconds" in found.advice


def test_a_declared_rate_fails_from_a_fall_in_row_and_sentence() -> None:
    """The row's number is in the metric's own direction, like its ratio."""
    facts = MetricFacts("rate", "tokens/step", "decode", Better.HIGHER)
    values = [50.0, 50.3, 49.8, 50.1, 50.2, 49.9, 50.0, 50.1]
    old, new = sessions({("a", "rate"): values}), sessions({("a", "rate"): [0.8 * one for one in values[:5]]})
    policy = Policy(
        metrics={"rate": facts}, tolerance={"prefill": 0.1, "decode": 1.5, "both": 0.1}, fail_from={"decode": 0.1}
    )
    (found,) = judge(old, new, policy).findings
    assert (found.verdict, found.gated) == (Verdict.REGRESSION, True)
    assert found.fails_from == pytest.approx(1 / 1.1 - 1)
    assert "-20.0 %, fails from -9.1 %" in found.reason
