"""Stored comparisons: small cases with known answers, and properties that hold for any data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, CompareSettings, Decision, StoredComparison

STEADY = [20.0, 20.4, 19.8, 20.1, 20.3, 19.9, 20.2, 20.0, 19.7, 20.1]


def comparison(
    baseline: list[float],
    candidate: list[float],
    *,
    name: str = "chat tpot",
    group: str = "tpot",
    tolerance: float = 0.05,
    floor: float = 0.0,
    higher_is_better: bool = False,
    gated: bool = True,
) -> StoredComparison:
    return StoredComparison(name, group, baseline, candidate, tolerance, floor, higher_is_better, gated)


def judge(baseline: list[float], candidate: list[float], *, tolerance: float = 0.05, floor: float = 0.0) -> ComparedRow:
    return compare_stored([comparison(baseline, candidate, tolerance=tolerance, floor=floor)]).rows[0]


def scaled(values: list[float], factor: float) -> list[float]:
    return [value * factor for value in values]


def test_a_forty_percent_worsening_regresses() -> None:
    row = judge(STEADY, scaled(STEADY, 1.4))
    assert row.decision is Decision.REGRESSED
    assert row.ratio == pytest.approx(1.4)
    assert row.low is not None
    assert row.high is not None
    assert row.low < 1.4 < row.high


def test_the_same_data_are_within_and_the_sentence_says_what_would_have_been_found() -> None:
    row = judge(STEADY, STEADY)
    assert row.decision is Decision.WITHIN
    assert row.mde is not None
    assert row.mde <= 0.05
    assert f"a worsening of {100 * row.mde:.1f} % would have been found" in row.reason


def test_throughput_that_rises_improves_and_one_that_falls_regresses() -> None:
    for factor, decision in ((1.3, Decision.IMPROVED), (0.7, Decision.REGRESSED)):
        one = comparison(STEADY, scaled(STEADY, factor), higher_is_better=True)
        row = compare_stored([one]).rows[0]
        assert row.decision is decision
        assert row.ratio == pytest.approx(factor)
        assert row.d == pytest.approx(-math.log(factor))
        assert row.low is not None
        assert row.high is not None
        assert row.low < row.high


def test_equal_baseline_values_neither_crash_nor_alarm() -> None:
    row = judge([100.0] * 10, [100.4] * 10)
    assert row.decision is Decision.WITHIN
    assert any("all but equal" in line for line in row.warnings)


def test_equal_baseline_values_still_show_a_regression() -> None:
    assert judge([100.0] * 6, [130.0, 131.0, 129.0, 130.0, 130.0, 130.0]).decision is Decision.REGRESSED


def test_one_outlier_among_twenty_does_not_decide() -> None:
    row = judge(STEADY * 2, [*STEADY, *STEADY[:-1], 2000.0])
    assert row.decision is Decision.WITHIN
    assert any("stand far off" in line for line in row.warnings)


def test_one_bad_session_of_three_neither_alarms_nor_passes() -> None:
    """A third of the sessions is too much to wave off and too little to convict."""
    row = judge(STEADY, [20.0, 20.1, 28.0])
    assert row.decision is Decision.UNDECIDED
    assert "stand far off" in row.reason


def test_one_bad_baseline_session_does_not_hide_a_regression() -> None:
    assert judge([*STEADY[:-1], 30.0], scaled(STEADY[:5], 1.08)).decision is Decision.REGRESSED


def test_one_session_a_side_gives_no_p_value() -> None:
    row = judge([20.0], [30.0])
    assert row.decision is Decision.UNDECIDED
    assert row.p is None
    assert row.mde is None
    assert row.low is None
    assert "one session on each side" in row.reason


def test_one_baseline_session_never_passes() -> None:
    row = judge([20.0], scaled(STEADY, 1.0))
    assert row.decision is Decision.UNDECIDED
    assert "record 7 more baseline sessions" in row.reason


def test_one_baseline_session_names_only_gross_regressions_and_states_its_assumption() -> None:
    assert judge([20.0], scaled(STEADY, 1.2)).decision is Decision.UNDECIDED
    gross = judge([20.0], scaled(STEADY, 3.0))
    assert gross.decision is Decision.REGRESSED
    assert "assuming that sessions vary by 5.0 %, which nobody measured" in gross.reason


def test_one_candidate_session_decides_nothing() -> None:
    row = judge(STEADY, [40.0])
    assert row.decision is Decision.UNDECIDED
    assert row.sessions_needed is not None


def test_a_side_without_sessions_is_undecided() -> None:
    assert judge([], STEADY).decision is Decision.UNDECIDED
    assert judge(STEADY, []).decision is Decision.UNDECIDED


def test_a_worsening_below_the_absolute_floor_is_no_regression() -> None:
    assert judge(STEADY, scaled(STEADY, 1.4), floor=7.0).decision is Decision.REGRESSED
    assert judge(STEADY, scaled(STEADY, 1.4), floor=9.0).decision is not Decision.REGRESSED


def test_a_proven_but_small_worsening_is_no_regression() -> None:
    """Half the tolerance is the least that counts, however sure."""
    row = judge([100.003] * 10, [101.004] * 10)
    assert row.p is not None
    assert row.p < 1e-6
    assert row.decision is Decision.WITHIN


def test_sessions_that_are_asked_for_do_decide() -> None:
    """Of sessions that stay as calm as those at hand."""
    calm = [20.0, 20.1] * 20
    row = judge(STEADY, calm[:2], tolerance=0.04)
    assert row.decision is Decision.UNDECIDED
    assert row.sessions_needed is not None
    more = calm[: 2 + row.sessions_needed]
    assert judge(STEADY, more, tolerance=0.04).decision is Decision.WITHIN
    assert judge(STEADY, more[:-1], tolerance=0.04).decision is Decision.UNDECIDED


def test_where_no_candidate_sessions_would_decide_the_baseline_is_asked_for_more() -> None:
    row = judge(STEADY[:4], STEADY * 2, tolerance=0.03)
    assert row.sessions_needed is None
    assert row.baseline_needed is not None
    assert "more baseline sessions would decide" in row.reason


def test_more_gated_comparisons_ask_for_more_evidence() -> None:
    alone = judge(STEADY, STEADY)
    others = [comparison(STEADY, STEADY, name=f"w{i}", group=f"g{i}") for i in range(30)]
    among = compare_stored([comparison(STEADY, STEADY), *others]).rows[0]
    assert alone.mde is not None
    assert among.mde is not None
    assert among.mde > alone.mde


def test_advisory_comparisons_cost_the_gated_ones_nothing() -> None:
    alone = judge(STEADY, STEADY)
    others = [comparison(STEADY, STEADY, name=f"w{i}", group=f"g{i}", gated=False) for i in range(30)]
    assert compare_stored([comparison(STEADY, STEADY), *others]).rows[0] == alone


def test_a_restless_candidate_is_not_called_slower() -> None:
    """Ten times the baseline's spread around nearly the same level; the baseline's variance alone would convict."""
    rng = np.random.default_rng(3)
    restless = np.exp(math.log(20.0) + 0.045 + rng.normal(0.0, 0.12, 6)).tolist()
    row = judge(scaled([100.0, 100.5, 99.6, 100.1, 100.4, 99.8, 100.2, 99.9], 0.2), restless)
    assert row.decision is Decision.UNDECIDED
    assert any("times as much as the baseline's" in line for line in row.warnings)


def test_a_bad_value_is_named_with_its_place() -> None:
    with pytest.raises(ValueError, match="chat tpot: value 2 of the candidate is nan"):
        judge(STEADY, [20.0, math.nan])
    with pytest.raises(ValueError, match="two comparisons are named"):
        compare_stored([comparison(STEADY, STEADY)] * 2)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha is 5"):
        CompareSettings(alpha=5)


def test_everything_that_moves_alike_points_at_the_host() -> None:
    rows = [
        comparison(STEADY, scaled(STEADY, 1.2 + 0.01 * i), name=f"w{i} {metric}", group=metric)
        for i in range(3)
        for metric in ("ttft", "tpot")
    ]
    said = compare_stored(rows).common_shift
    assert said is not None
    assert "all 6 comparisons of 2 metrics moved alike, worse by" in said
    rows[2] = replace(rows[2], candidate=STEADY)
    assert compare_stored(rows).common_shift is None


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    baseline=st.integers(1, 12),
    candidate=st.integers(1, 8),
    spread=st.sampled_from([0.0, 0.003, 0.02, 0.2]),
    shift=st.sampled_from([-0.3, 0.0, 0.03, 0.3]),
)
def test_whatever_the_data_a_pass_has_the_power_it_claims(
    seed: int, baseline: int, candidate: int, spread: float, shift: float
) -> None:
    """WITHIN needs a detectable worsening within the tolerance; every row has a reason; units do not matter."""
    rng = np.random.default_rng(seed)
    before = np.exp(rng.normal(0.0, spread, baseline)).tolist()
    now = np.exp(rng.normal(shift, spread, candidate)).tolist()
    row = judge(before, now)
    assert row.reason
    if row.decision is Decision.WITHIN:
        assert row.mde is not None
        assert row.mde <= 0.05
        assert baseline >= 2
        assert candidate >= 2
    if row.decision is Decision.REGRESSED:
        assert row.d is not None
        assert row.d >= math.log1p(0.05) / 2
    in_ms = judge(scaled(before, 1000.0), scaled(now, 1000.0))
    assert in_ms.decision is row.decision


def test_two_candidate_sessions_find_what_the_row_says_they_would() -> None:
    """True effects of the claimed size, drawn 400 times: at most 3 % missed, 1 % promised. Without reckoning with the
    session that is left out, the claim is too small and more would be missed."""
    rng, missed = np.random.default_rng(9), 0
    for _ in range(400):
        before, now = rng.normal(0.0, 0.008, (4, 20)), rng.normal(0.0, 0.008, (4, 2))
        one = [
            comparison(np.exp(a).tolist(), np.exp(b).tolist(), name=f"w{i}", tolerance=0.001)
            for i, (a, b) in enumerate(zip(before, now, strict=True))
        ]
        row = compare_stored(one).rows[0]
        assert row.mde is not None
        assert row.deviation is not None
        shift = (1.0 + row.mde) ** (0.008 / row.deviation)
        one[0] = replace(one[0], candidate=scaled(list(one[0].candidate), shift))
        missed += compare_stored(one).rows[0].decision is not Decision.REGRESSED
    assert missed <= 12


QUIET = [45.8, 45.9, 45.7, 45.8, 46.0, 45.6, 45.8, 45.9]


@pytest.mark.parametrize("candidate", [[54.3, 47.1], [54.3, 47.1, 57.1]], ids=["two", "three"])
def test_sessions_that_contradict_each_other_decide_nothing_and_their_interval_holds_them(
    candidate: list[float],
) -> None:
    """One of them is nearly as fast as before: a noise that the baseline has never seen, and no proof of a change."""
    row = judge(QUIET, candidate)
    assert row.decision is Decision.UNDECIDED
    assert "contradict each other, +2.8 %" in row.reason
    assert row.low is not None
    assert row.high is not None
    assert row.low <= min(candidate) / 45.8 + 1e-3
    assert row.high >= max(candidate) / 45.8 - 1e-3


@pytest.mark.parametrize("candidate", [[54.3, 60.1], [0.8 * 45.8, 0.7 * 45.8]], ids=["slower", "faster"])
def test_contradicting_sessions_decide_where_each_of_them_says_the_same(candidate: list[float]) -> None:
    row = judge(QUIET, candidate)
    assert row.decision is (Decision.REGRESSED if candidate[0] > 50 else Decision.IMPROVED)


def test_one_bad_session_of_three_is_still_recognised_by_the_other_two() -> None:
    row = judge(QUIET, [45.8 * 1.1, 45.8 * 1.101, 45.8 * 1.6])
    assert row.decision is Decision.REGRESSED
    assert row.high is not None
    assert row.high < 1.2


def test_the_limit_that_is_named_is_the_one_that_was_applied() -> None:
    """C049: the second step of the correction allows twice as much as the first, and the sentence says so."""
    base = scaled(STEADY, 1.0)
    surely = comparison(base, scaled(STEADY, 1.4), name="a", group="a")
    base_of_b = [20.0 + 0.9 * math.sin(5.0 * index) for index in range(10)]
    for factor in np.linspace(1.03, 1.10, 71):
        barely = comparison(base_of_b, scaled(base_of_b[:6], float(factor)), name="b", group="b")
        row = compare_stored([surely, barely]).row("b")
        assert row.p is not None
        assert row.p_allowed == pytest.approx(0.01)
        if 0.005 < row.p <= 0.01:
            break
    else:
        raise AssertionError("no factor gave a p between the two steps")
    assert row.decision is Decision.REGRESSED
    assert f"p = {row.p:.2g} of 0.01 allowed" in row.reason
    alone = compare_stored([replace(surely, candidate=STEADY), barely]).row("b")
    assert alone.p_allowed == pytest.approx(0.005)
    assert alone.decision is not Decision.REGRESSED


@pytest.mark.parametrize("factor", [1.02, 1.028, 1.042, 1.047])
def test_a_proven_worsening_fails_from_the_size_that_is_set(factor: float) -> None:
    """Half the tolerance where nothing is set; the sentence names the size either way."""
    steady = [20.0 * (1 + 0.001 * math.sin(5.0 * index)) for index in range(10)]
    one = comparison(steady, scaled(steady[:6], factor))
    for fail_from, limit in ((None, 0.025), (0.01, 0.01), (0.04, 0.04), (0.05, 0.05), (0.0, 0.0)):
        row = compare_stored([replace(one, fail_from=fail_from)]).rows[0]
        fails = factor - 1 >= limit - 1e-9
        assert row.decision is (Decision.REGRESSED if fails else Decision.WITHIN), (fail_from, row.reason)
        assert row.fails_from == limit
        assert f"{100 * (factor - 1):+.1f} %, fails from {100 * limit:.1f} %, 95 % interval" in row.reason
        assert ("worse than noise explains" in row.reason) == (row.p is not None and row.p <= 0.01)
        assert ("but too little to fail" in row.reason) == (not fails)


def test_the_floor_raises_the_size_from_which_a_worsening_fails() -> None:
    row = judge(STEADY, scaled(STEADY, 1.4), floor=9.0)
    assert row.fails_from == pytest.approx(0.45, rel=0.01)
    assert "+40.0 %, fails from 4" in row.reason


def test_a_throughput_fails_from_a_fall() -> None:
    row = compare_stored([comparison(STEADY, scaled(STEADY, 0.7), higher_is_better=True, tolerance=0.10)]).rows[0]
    assert row.fails_from == 0.05
    assert "-30.0 %, fails from -4.8 %, 95 % interval" in row.reason


def test_what_only_informs_names_no_size_from_which_it_fails() -> None:
    row = compare_stored([comparison(STEADY, scaled(STEADY, 1.4), gated=False)]).rows[0]
    assert "fails from" not in row.reason


def test_a_light_comparison_leaves_the_others_their_power() -> None:
    """Ten more comparisons of a tenth of the weight cost what one more costs."""
    tens = [comparison(STEADY, STEADY, name=str(index)) for index in range(10)]
    light = [comparison(STEADY, STEADY, name=f"light {index}") for index in range(10)]
    alone = compare_stored(tens).row("0").p_allowed
    beside = compare_stored([*tens, *(replace(one, weight=0.1) for one in light)]).row("0").p_allowed
    equal = compare_stored([*tens, *light]).row("0").p_allowed
    assert [alone, beside, equal] == pytest.approx([0.001, 0.01 / 11, 0.0005])
