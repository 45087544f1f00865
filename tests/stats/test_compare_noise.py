"""What candidate sessions add to the baseline's noise: how sure a handful of them is, and when they are restless."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from phasegate.stats import compare_noise
from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_noise import (
    ALIKE_DF,
    Noise,
    Shown,
    error_df,
    shown_together,
    spread_factor,
    with_unrest,
)
from phasegate.stats.compare_types import Decision, StoredComparison

KNOWN = Noise(deviation=0.01, df=40.0, correlation=0.3)


def drawn(seed: int, count: int, sessions: int, deviation: float) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0.0, deviation, sessions) for _ in range(count)]


def test_candidates_as_calm_as_their_baseline_widen_nothing_but_are_known_less_well() -> None:
    calm = np.array([0.0, 0.002, 0.001])
    noise = with_unrest(KNOWN, calm, shown_together([KNOWN] * 5, [calm] * 5))
    assert noise.unrest == 1.0
    assert not noise.restless
    assert spread_factor(8, 3, noise) == spread_factor(8, 3, KNOWN)
    few, more = error_df(8, 2, noise), error_df(8, 3, noise)
    assert ALIKE_DF < few < more
    assert few < KNOWN.df / 2


def test_few_baseline_sessions_leave_few_degrees_of_freedom() -> None:
    """The sum of two variances is known no better than by the degrees of freedom of both."""
    noise = with_unrest(replace(KNOWN, df=2.0), np.array([0.0, 0.001]))
    assert error_df(3, 2, noise) <= 1.5 * 2.0


def test_what_few_sessions_show_counts_by_its_weight_until_it_is_proven() -> None:
    """A fourfold variance: two sessions are drawn towards the baseline's, eight of all comparisons count in full."""
    hint = with_unrest(KNOWN, np.array([0.0, 0.02]), Shown(4.0, 2.0))
    assert 1.5 < hint.unrest < 3.0
    assert not hint.restless
    scattered = drawn(3, 10, 8, 0.02)
    shown = shown_together([KNOWN] * 10, scattered)
    assert shown.restless
    proven = with_unrest(KNOWN, scattered[0], shown)
    assert proven.unrest == pytest.approx(max(shown.ratio, proven.unrest))
    assert proven.unrest > 2.5


def test_a_single_bad_session_does_not_make_a_candidate_restless() -> None:
    calm = drawn(5, 10, 5, 0.01)
    bad = [one + np.array([0.0, 0.0, 0.3, 0.0, 0.0]) * (number % 2) for number, one in enumerate(calm)]
    assert not shown_together([KNOWN] * 10, bad).restless
    assert not with_unrest(KNOWN, bad[1]).restless
    two = [one + np.array([0.0, 0.4, 0.3, 0.0, 0.0]) for one in calm]
    assert shown_together([KNOWN] * 10, two).restless


def test_blocks_are_judged_by_their_own_noise() -> None:
    assert error_df(0, 8, KNOWN) == KNOWN.df


def alarms(builds: int, scatter: float, sessions: int, *, baseline: int = 8, comparisons: int = 4) -> int:
    """Builds with an alarm: an unchanged candidate that scatters so many times as much as its baseline."""
    count = 0
    for build in range(builds):
        rng = np.random.default_rng([41, build])
        made = []
        for number in range(comparisons):
            before, now = rng.normal(0.0, 0.01, baseline), scatter * rng.normal(0.0, 0.01, sessions)
            made.append(StoredComparison(f"w{number}", "tpot", np.exp(before).tolist(), np.exp(now).tolist(), 0.02))
        count += any(row.decision is Decision.REGRESSED for row in compare_stored(made).rows)
    return count


def test_a_candidate_that_scatters_twice_as_much_is_seldom_called_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 1 % of builds promised. Were the candidate believed to vary as its baseline, it would be far more."""
    assert alarms(400, 2.0, 2) <= 4
    monkeypatch.setattr(compare_noise, "ALIKE_DF", math.inf)
    assert alarms(500, 2.0, 2) > 10


@pytest.mark.parametrize(("baseline", "sessions"), [(2, 3), (3, 5)])
def test_few_baseline_sessions_that_happen_to_agree_raise_no_alarm(baseline: int, sessions: int) -> None:
    """One comparison alone at 1 %, so that nothing steadies its variance."""
    assert alarms(500, 1.0, sessions, baseline=baseline, comparisons=1) <= 10
