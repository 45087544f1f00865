"""The laws under load: batching that amortises decode, and a stall with a bound."""

from __future__ import annotations

import pytest

from phasegate.stats import laws
from phasegate.stats.outcome import Outcome
from tests.stats.sessions import noisy


@pytest.mark.parametrize(("ratio", "wanted"), [(1.4, Outcome.PASS), (1.0, Outcome.FAIL), (1.19, Outcome.INCONCLUSIVE)])
def test_throughput_must_surely_exceed_the_factor(ratio: float, wanted: Outcome) -> None:
    """Against the default of 1.2: batched, one after another, and next to the margin."""
    single, batched = noisy([100.0, 100.0 * ratio], 0.03).T
    result = laws.amortises(single, batched)
    assert result.outcome is wanted
    assert result.effect == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize(("seconds", "wanted"), [(0.2, Outcome.PASS), (1.5, Outcome.FAIL), (0.5, Outcome.INCONCLUSIVE)])
def test_the_stall_of_a_collision_must_surely_stay_below_its_bound(seconds: float, wanted: Outcome) -> None:
    """Against half a second."""
    result = laws.stall_bounded(noisy([seconds], 0.1).ravel(), bound=0.5)
    assert result.outcome is wanted
    assert (result.needed is None) == (wanted is not Outcome.INCONCLUSIVE)
    assert result.low is not None
    assert result.high is not None
    assert result.effect is not None
    assert result.low < result.effect < result.high


def test_few_blocks_are_not_judged_and_bad_input_is_named() -> None:
    """Four repetitions ask for one more."""
    assert laws.amortises([1.0] * 4, [2.0] * 4).needed == 1
    assert laws.stall_bounded([0.1] * 4, bound=0.5).needed == 1
    with pytest.raises(ValueError, match="pair by block"):
        laws.amortises([1.0] * 4, [2.0] * 5)
    with pytest.raises(ValueError, match="positive"):
        laws.stall_bounded([0.0] * 5, bound=0.5)
