"""Measured samples appear in pytest-benchmark as if it had timed them itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from phasegate.pytest_plugin.replay_timer import ReplayTimer

seconds = st.floats(1e-9, 1e6, allow_nan=False)


@given(st.lists(seconds, min_size=1, max_size=50))
def test_every_round_lasts_exactly_one_sample(samples: list[float]) -> None:
    timer = ReplayTimer(samples)
    replayed = []
    for _ in samples:
        start = timer()
        replayed.append(timer() - start)
    assert replayed == samples
