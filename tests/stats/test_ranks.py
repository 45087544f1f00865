"""The order of sessions: exact for few, and as good as normal for many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from phasegate.stats.ranks import rank_p


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 2), (16, 8), (44, 44), (45, 45), (400, 60)])
@pytest.mark.parametrize("shift", [-0.5, 0.0, 1.5])
def test_p_is_that_of_the_table(k: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(k)
    old, new = rng.normal(0.0, 1.0, k), rng.normal(shift, 1.0, m)
    few = k * m <= 2000
    expected = mannwhitneyu(new, old, alternative="greater", method="exact" if few else "asymptotic").pvalue
    assert rank_p(old, new) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_equal_values_prove_nothing() -> None:
    assert rank_p(np.zeros(10), np.zeros(5)) == 1.0
