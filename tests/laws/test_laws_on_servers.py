"""Every law of the phases on a server that keeps it, and on a server that breaks it on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from phasegate.engines.simulator.breakers import broken
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.measure.session_runner import MeasurementError
from phasegate.stats.laws.cache import CACHE_OFF, SLOWER
from phasegate.stats.outcome import Outcome
from tests.laws.bench import CLAIMS, SPEED, Bench, bench_on, healthy


@pytest.fixture(scope="module")
def well() -> Iterator[Bench]:
    """A bench on the healthy server; every workload is measured once."""
    with bench_on(healthy(), blocks=8) as bench:
        yield bench


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_healthy_server_keeps_every_law(claim: str, well: Bench) -> None:
    """Proven within its margin, not merely not refuted."""
    result = well.verdict(claim)
    assert result.outcome is Outcome.PASS, result.reason


def planted() -> dict[str, SimulatorConfig]:
    """Servers that break one law each."""
    well = healthy()
    return {
        **{
            name: broken(well, name)
            for name in ("ttft-constant", "tpot-grows", "total-step", "cache-off", "cache-slower")
        },
        # Longer than in the table of breakers: a stall is judged in real seconds, and these pass faster.
        "stalls": broken(well, "stalls").changed(stall_every_tokens=60, stall_seconds=0.1 * SPEED),
        "heavy-kv": well.changed(kv_seconds_per_token=5e-6),
    }


@pytest.mark.parametrize(
    ("server", "claims", "detail"),
    [
        ("ttft-constant", ["TTFT rises with prompt length"], ""),
        ("tpot-grows", ["TPOT is flat in output length"], ""),
        ("heavy-kv", ["TPOT hardly grows with prompt length"], ""),
        ("total-step", ["total is linear"], ""),
        ("stalls", ["no stalls"], ""),
        ("cache-off", ["same prompt again", "same prefix, new suffix"], CACHE_OFF),
        ("cache-slower", ["same prompt again", "same prefix, new suffix"], SLOWER),
    ],
)
def test_a_server_that_breaks_a_law_fails_it(server: str, claims: list[str], detail: str) -> None:
    """Its own law fails, with the kind of failure where there are several; being inconclusive would not do."""
    with bench_on(planted()[server]) as bench:
        results = [bench.verdict(claim) for claim in claims]
    for result in results:
        assert result.outcome is Outcome.FAIL, result.reason
        assert not detail or result.detail == detail


def test_a_server_that_holds_its_answers_back_cannot_be_judged() -> None:
    """When the whole answer comes at once, no first token was seen: no law is tested on such numbers."""
    held_back = healthy().changed(faults=[{"fault": "buffered", "every": 1}])
    with bench_on(held_back) as bench, pytest.raises(MeasurementError, match="unfit for a latency sample") as caught:
        bench.measure("prefix-cache")
    assert "buffered" in str(caught.value)
