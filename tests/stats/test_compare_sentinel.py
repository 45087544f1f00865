"""The sentinel: it removes what the host did, costs next to nothing where it is useless, and shows a changed host."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phasegate.stats.compare import compare_stored
from phasegate.stats.compare_types import ComparedRow, Decision, StoredComparison
from phasegate.stats.sentinel import NO_RELATION, relations

Logs = NDArray[np.float64]


def build(
    rng: np.random.Generator, host: float, sentinel_noise: float, *, with_sentinel: bool
) -> tuple[ComparedRow, ...]:
    """Six comparisons of 8 + 3 sessions on one host, nothing changed."""
    drift = rng.normal(0.0, host, 11)
    reference = np.exp(drift + rng.normal(0.0, sentinel_noise, 11))
    return compare_stored(
        [
            StoredComparison(
                f"w{i}", "tpot", values[:8].tolist(), values[8:].tolist(), 0.05,
                baseline_sentinel=reference[:8].tolist() if with_sentinel else (),
                candidate_sentinel=reference[8:].tolist() if with_sentinel else (),
            )
            for i, values in enumerate(np.exp(drift + rng.normal(0.0, 0.004, (6, 11))))
        ]
    ).rows  # fmt: skip


def mean_square(host: float, sentinel_noise: float, *, with_sentinel: bool) -> float:
    """Of the estimated differences, whose true value is 0, over 120 builds."""
    rng = np.random.default_rng(11)
    rows = [build(rng, host, sentinel_noise, with_sentinel=with_sentinel) for _ in range(120)]
    return float(np.mean([row.d**2 for build_rows in rows for row in build_rows if row.d is not None]))


def test_a_good_sentinel_removes_most_of_the_hosts_drift() -> None:
    assert mean_square(0.02, 0.003, with_sentinel=True) < 0.3 * mean_square(0.02, 0.003, with_sentinel=False)


def test_a_useless_sentinel_is_hardly_worse_than_none() -> None:
    assert mean_square(0.0, 0.05, with_sentinel=True) < 1.1 * mean_square(0.0, 0.05, with_sentinel=False)


def test_a_bad_sentinel_session_does_not_bend_the_comparison() -> None:
    rng = np.random.default_rng(12)
    host, own = rng.normal(0.0, 0.01, 13), rng.normal(0.0, 0.003, (2, 13))
    metric, reference = np.exp(host + own[0]), np.exp(host + own[1])
    reference[11] *= 1.5
    row = compare_stored(
        [
            StoredComparison(
                "w", "tpot", metric[:8].tolist(), metric[8:].tolist(), 0.05,
                baseline_sentinel=reference[:8].tolist(), candidate_sentinel=reference[8:].tolist(),
            )
        ]
    ).rows[0]  # fmt: skip
    assert row.d is not None
    assert abs(row.d) < 0.015


def test_a_host_that_changed_leaves_everything_undecided() -> None:
    steady = [20.0, 20.4, 19.8, 20.1, 20.3]
    one = StoredComparison(
        "w", "tpot", steady, [2 * value for value in steady], 0.05,
        baseline_sentinel=[5.0, 5.1, 4.9, 5.0, 5.0], candidate_sentinel=[10.0, 10.1, 9.9, 10.0, 10.0],
    )  # fmt: skip
    row = compare_stored([one]).rows[0]
    assert row.decision is Decision.UNDECIDED
    assert "the frozen reference itself moved by +100.0 %" in row.reason
    without = StoredComparison("w", "tpot", one.baseline, one.candidate, 0.05)
    assert compare_stored([without]).rows[0].decision is Decision.REGRESSED


def test_few_sessions_and_absent_sentinels_show_no_relation() -> None:
    short: tuple[Logs, Logs] = (np.arange(4.0), np.arange(4.0))
    assert relations([None, short]) == [NO_RELATION, NO_RELATION]


def test_a_sentinel_that_moves_the_other_way_is_not_used() -> None:
    falling: tuple[Logs, Logs] = (np.arange(8.0), -np.arange(8.0))
    assert relations([falling]) == [NO_RELATION]
