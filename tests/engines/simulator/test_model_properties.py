"""Whatever the settings and the arrivals: every answer is complete, in order, and never early."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.engines.simulator.config import Batching, CacheMode, FullKv, SimulatorConfig, Speculation
from phasegate.engines.simulator.model import Arrival
from phasegate.engines.simulator.timetable import simulate, timetable_for
from tests.engines.simulator.arrivals import arrival

CONFIGS = st.builds(
    SimulatorConfig,
    batching=st.sampled_from(Batching),
    chunked_prefill=st.booleans(),
    step_token_budget=st.integers(8, 64),
    max_sequences=st.integers(1, 8),
    context_limit=st.just(64),
    kv_capacity_tokens=st.integers(64, 200),
    full_kv=st.sampled_from(FullKv),
    cache=st.sampled_from(CacheMode),
    cache_block_tokens=st.integers(1, 16),
    cache_capacity_tokens=st.integers(1, 128),
    draft_tokens=st.integers(0, 4),
    speculation=st.sampled_from(Speculation),
    stall_every_tokens=st.integers(0, 5),
    stall_seconds=st.sampled_from([0.0, 0.01, 1.0]),
    pause_at_token=st.integers(0, 5),
    ttft_constant_seconds=st.sampled_from([None, 0.0, 0.2]),
    step_cv=st.sampled_from([0.0, 0.3]),
    network_jitter_seconds=st.sampled_from([0.0, 0.05]),
)

REQUESTS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(1, 40), st.integers(1, 24), st.sampled_from(["a", "b"])), max_size=12
)


def _arrivals(drawn: list[tuple[float, int, int, str]]) -> list[Arrival]:
    ordered = sorted(drawn)
    return [
        arrival(number, at=at, prompt=prompt, output=output, text=text)
        for number, (at, prompt, output, text) in enumerate(ordered, start=1)
    ]


@settings(max_examples=150, deadline=None)
@given(CONFIGS, REQUESTS)
def test_every_answer_is_complete_in_order_and_never_early(
    config: SimulatorConfig, drawn: list[tuple[float, int, int, str]]
) -> None:
    """Nothing is lost, doubled, reordered or stuck, even where memory is short and answers pause."""
    arrivals = _arrivals(drawn)
    left = simulate(config, arrivals)
    for request in arrivals:
        departures = left[request.number]
        firsts = [departure.first for departure in departures]
        sizes = [departure.tokens for departure in departures]
        assert [first for first, _ in zip(firsts, sizes, strict=True)] == [sum(sizes[:i]) for i in range(len(sizes))]
        assert sum(sizes) == request.output_tokens
        assert [departure.last for departure in departures] == [False] * (len(departures) - 1) + [True]
        moments = [request.at, *(departure.at for departure in departures)]
        assert moments == sorted(moments)


@settings(max_examples=100, deadline=None)
@given(CONFIGS, REQUESTS, st.lists(st.tuples(st.integers(1, 12), st.floats(0, 2)), max_size=4))
def test_abandoned_requests_hold_nobody_up_for_ever(
    config: SimulatorConfig, drawn: list[tuple[float, int, int, str]], aborts: list[tuple[int, float]]
) -> None:
    """Those that stay are answered, those that go get nothing more, and the engine comes to rest."""
    arrivals = _arrivals(drawn)
    gone = {number for number, _ in aborts}
    timetable = timetable_for(config)
    events: list[tuple[float, Arrival | int]] = [(request.at, request) for request in arrivals]
    events += [(2 + at, number) for number, at in aborts]
    last: set[int] = set()
    for at, what in sorted(events, key=lambda event: event[0]):
        left = timetable.abort(what, at) if isinstance(what, int) else []
        if isinstance(what, Arrival):
            timetable.arrive(what)
        last |= {departure.number for departure in left if departure.last}
    last |= {departure.number for departure in timetable.advance(1e6) if departure.last}
    assert {request.number for request in arrivals} - gone <= last
    assert (timetable.running, timetable.waiting) == (0, 0)


@settings(max_examples=100, deadline=None)
@given(CONFIGS)
def test_any_settings_survive_json(config: SimulatorConfig) -> None:
    """Field by field."""
    assert SimulatorConfig.from_json(config.to_json()) == config
    assert set(dataclasses.asdict(config)) == {field.name for field in dataclasses.fields(SimulatorConfig)}
