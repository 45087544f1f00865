"""The simulated engine obeys the laws of continuous batching, and each law breaks only when it is told to."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest

from phasegate.engines.simulator.breakers import BREAKERS, broken
from phasegate.engines.simulator.chance import session_effect
from phasegate.engines.simulator.config import Batching, CacheMode, FullKv, SimulatorConfig, Speculation
from phasegate.engines.simulator.model import NEVER, Departure, Scheduler, Step
from phasegate.engines.simulator.prefix_cache import PrefixCache
from phasegate.engines.simulator.timetable import simulate, timetable_for
from tests.engines.simulator.arrivals import QUIET, alone, arrival, gaps, tpot, ttft

LINEAR = QUIET.changed(attention_seconds_per_token_pair=0.0)


def test_ttft_is_linear_in_prompt_length() -> None:
    """Without the attention term every 64 further tokens cost the same."""
    times = [ttft(alone(LINEAR, prompt=n)) for n in (64, 128, 192, 256)]
    steps = [after - before for before, after in pairwise(times)]
    assert steps == pytest.approx([64 / LINEAR.prefill_tokens_per_second] * 3)


def test_attention_makes_ttft_grow_faster_than_the_prompt() -> None:
    """With it, twice the prompt costs more than twice the time."""
    heavy = QUIET.changed(attention_seconds_per_token_pair=1e-6, step_seconds=1e-9, request_overhead_seconds=0.0)
    assert ttft(alone(heavy, prompt=2048)) > 2.5 * ttft(alone(heavy, prompt=1024))


def test_ttft_does_not_depend_on_output_length() -> None:
    """The first token leaves before anybody knows how many follow."""
    assert ttft(alone(QUIET, output=1)) == ttft(alone(QUIET, output=256))


def test_tpot_is_flat_in_output_length_and_nearly_flat_in_prompt_length() -> None:
    """Reading the weights dominates; reading the cache shows by a few per cent only."""
    assert tpot(alone(QUIET, output=256)) == pytest.approx(tpot(alone(QUIET, output=16)), rel=0.003)
    ratio = tpot(alone(QUIET, prompt=2048)) / tpot(alone(QUIET, prompt=64))
    assert 1.0 < ratio < 1.05


def test_total_is_linear_in_output_length() -> None:
    """Intercept TTFT, slope TPOT."""
    config = QUIET.changed(kv_seconds_per_token=0.0)
    one, more = alone(config, output=1)[-1].at, alone(config, output=101)[-1].at
    assert more - one == pytest.approx(100 * (config.step_seconds + config.sequence_seconds))


def test_batching_amortises_the_weights() -> None:
    """Sixteen together make far more tokens a second, and each of them is a little slower."""
    together = simulate(QUIET, [arrival(n, prompt=16, output=64) for n in range(1, 17)])
    single = alone(QUIET, prompt=16, output=64)
    slowest = max(departures[-1].at for departures in together.values())
    assert slowest < 4 * single[-1].at
    assert tpot(single) < tpot(together[1]) < 3 * tpot(single)


def test_one_at_a_time_makes_requests_wait() -> None:
    """With one place the second request starts when the first has ended."""
    left = simulate(QUIET.changed(max_sequences=1), [arrival(1), arrival(2)])
    assert left[2][0].at > left[1][-1].at


def _stall(config: SimulatorConfig) -> float:
    """The longest gap of a running answer when a prompt of 4,096 tokens arrives beside it."""
    late = arrival(2, at=0.5, prompt=4096, output=4)
    return max(gaps(simulate(config, [arrival(1, prompt=16, output=400), late])[1]))


def test_chunked_prefill_bounds_the_stall_that_a_long_prompt_causes() -> None:
    """With pieces of 256 tokens the gap is one piece and one step; in one piece it is the whole prefill."""
    assert _stall(QUIET.changed(step_token_budget=256)) < 0.4
    assert _stall(QUIET.changed(chunked_prefill=False)) > 2.5


def test_a_smaller_budget_makes_the_long_prompt_itself_wait_longer() -> None:
    """What the running answers gain, the late prompt pays."""
    runner, late = arrival(1, prompt=16, output=400), arrival(2, at=0.5, prompt=4096, output=4)
    small = simulate(QUIET.changed(step_token_budget=256), [runner, late])[2]
    assert ttft(small, 0.5) > ttft(simulate(QUIET, [runner, late])[2], 0.5)


def _second_call(config: SimulatorConfig) -> tuple[float, float]:
    """TTFT of a prompt, and of the same prompt again."""
    left = simulate(config, [arrival(1, prompt=512, text="same"), arrival(2, at=10.0, prompt=512, text="same")])
    return ttft(left[1]), ttft(left[2], 10.0)


def test_a_cached_prompt_is_faster() -> None:
    """All but the last block are there already."""
    cold, cached = _second_call(QUIET)
    assert cached < cold / 5


def test_without_a_cache_the_second_call_is_as_slow() -> None:
    """Off means off."""
    cold, cached = _second_call(QUIET.changed(cache=CacheMode.OFF))
    assert cached == pytest.approx(cold)


def test_a_slower_cache_is_slower_and_still_reports_its_hits() -> None:
    """The evidence says cached, the clock says otherwise."""
    config = QUIET.changed(cache=CacheMode.SLOWER)
    cold, cached = _second_call(config)
    assert cached > 1.3 * cold
    timetable = timetable_for(config)
    timetable.arrive(arrival(1, prompt=512, text="same"))
    timetable.advance(5.0)
    course = timetable.arrive(arrival(2, at=10.0, prompt=512, text="same"))
    timetable.advance(20.0)
    assert course.cached_tokens == 496


def test_a_shared_prefix_helps_up_to_where_the_prompts_differ() -> None:
    """Another suffix costs its own tokens only."""
    shared = [f"s{i}" for i in range(480)]
    cold = arrival(1, prompt=512, text="one")
    from phasegate.engines.simulator.model import Arrival
    from phasegate.engines.simulator.prefix_cache import block_keys

    requests = [
        Arrival(n, 10.0 * n, 512, 4, block_keys([*shared, *(f"{n}-{i}" for i in range(32))], 16)) for n in (2, 3)
    ]
    left = simulate(QUIET, [cold, *requests])
    assert ttft(left[2], 20.0) == pytest.approx(ttft(left[1]))
    assert ttft(left[3], 30.0) < ttft(left[2], 20.0) / 5


def test_a_speculative_step_writes_several_tokens_in_one_chunk() -> None:
    """Every guess accepted: four tokens a step."""
    config = QUIET.changed(draft_tokens=3, draft_acceptance=1.0)
    left = alone(config, output=17)
    assert [departure.tokens for departure in left] == [1, 4, 4, 4, 4]
    assert tpot(left) < tpot(alone(QUIET, output=17)) / 2


def test_a_speculative_burst_is_one_chunk_per_token_at_one_moment() -> None:
    """The same tokens at the same times, told apart."""
    config = QUIET.changed(draft_tokens=3, draft_acceptance=1.0, speculation=Speculation.BURST)
    left = alone(config, output=9)
    assert [departure.tokens for departure in left] == [1] * 9
    assert len({departure.at for departure in left}) == 3


def test_a_collapsed_acceptance_makes_speculation_a_loss() -> None:
    """Guesses cost, and here none is right."""
    config = QUIET.changed(draft_tokens=3, draft_acceptance=0.0)
    assert tpot(alone(config)) > tpot(alone(QUIET))


SMALL_KV = QUIET.changed(context_limit=512, kv_capacity_tokens=1024, step_token_budget=1024)


@pytest.mark.parametrize("full_kv", list(FullKv))
def test_every_answer_is_complete_though_the_kv_memory_is_too_small(full_kv: FullKv) -> None:
    """Sixteen requests of 300 tokens share memory for three."""
    config = SMALL_KV.changed(full_kv=full_kv)
    left = simulate(config, [arrival(n, prompt=200, output=100) for n in range(1, 17)])
    for departures in left.values():
        assert [departure.first for departure in departures] == list(range(100))
        assert [departure.last for departure in departures] == [False] * 99 + [True]


def test_only_preemption_throws_requests_out() -> None:
    """Queueing never loses a place; preempting does, and computes again."""
    for full_kv, expected in ((FullKv.QUEUE, False), (FullKv.PREEMPT, True)):
        timetable = timetable_for(SMALL_KV.changed(full_kv=full_kv))
        courses = [timetable.arrive(arrival(n, prompt=200, output=100)) for n in range(1, 9)]
        while timetable.next_at() < NEVER:
            timetable.advance(timetable.next_at())
        assert any(course.preemptions for course in courses) is expected


@pytest.mark.parametrize("full_kv", list(FullKv))
def test_the_kv_memory_never_holds_more_than_it_can(full_kv: FullKv) -> None:
    """At the end of every step, for memories of several sizes."""
    for capacity in range(1000, 1030, 3):
        assert 600 < _most_held(SMALL_KV.changed(full_kv=full_kv, kv_capacity_tokens=capacity)) <= capacity


def _most_held(config: SimulatorConfig) -> int:
    """The most tokens in the KV memory at the end of a step, with sixteen speculating requests.

    Looked at inside the loop: from outside, room for the next step has been made already.
    """
    held = []

    class Watched(Scheduler):
        def _finish(self, step: Step) -> list[Departure]:
            left = super()._finish(step)
            held.append(self.kv_tokens)
            return left

    config = config.changed(draft_tokens=2)
    loop = Watched(config, PrefixCache(16, 4096), session_effect(config))
    for number in range(1, 17):
        loop.arrive(arrival(number, prompt=200, output=100))
    loop.advance(1e6)
    return max(held)


def test_a_queue_shows_in_ttft_and_not_in_tpot() -> None:
    """Above the limit of places, requests wait before prefill."""
    config = QUIET.changed(max_sequences=4)
    left = simulate(config, [arrival(n, prompt=16, output=32) for n in range(1, 9)])
    assert ttft(left[8]) > 3 * ttft(left[4])
    assert tpot(left[8]) == pytest.approx(tpot(left[4]), rel=0.05)


def test_alone_means_that_company_does_not_matter() -> None:
    """Known timing at any concurrency."""
    config = QUIET.changed(batching=Batching.ALONE)
    crowd = simulate(config, [arrival(n) for n in range(1, 51)])
    expected = [departure.at for departure in alone(config)]
    assert all([departure.at for departure in departures] == expected for departures in crowd.values())


class TestBreakers:
    """Each planted change breaks its own law and leaves the other phase alone."""

    def test_constant_ttft(self) -> None:
        """The same for any prompt, and TPOT as before."""
        config = broken(QUIET, "ttft-constant")
        assert ttft(alone(config, prompt=1024)) == pytest.approx(0.3) == ttft(alone(config, prompt=64))
        assert tpot(alone(config)) == pytest.approx(tpot(alone(QUIET)))

    def test_growing_tpot(self) -> None:
        """Longer answers have a larger TPOT, and TTFT is as before."""
        config = broken(QUIET, "tpot-grows")
        assert tpot(alone(config, output=256)) > 1.5 * tpot(alone(config, output=16))
        assert ttft(alone(config)) == ttft(alone(QUIET))

    def test_step_in_the_total(self) -> None:
        """Half a second between token 48 and token 49, and nowhere else."""
        found = gaps(alone(broken(QUIET, "total-step"), output=64))
        assert [index for index, gap in enumerate(found) if gap > 0.1] == [47]
        assert found[47] == pytest.approx(0.5 + found[46], rel=0.01)

    def test_stalls(self) -> None:
        """After every tenth token."""
        found = gaps(alone(broken(QUIET, "stalls"), output=35))
        assert [index for index, gap in enumerate(found) if gap > 0.1] == [9, 19, 29]

    def test_slower_prefill(self) -> None:
        """A fifth more prefill, and not a microsecond of decoding."""
        config = broken(QUIET, "prefill-slower")
        overhead = QUIET.request_overhead_seconds
        assert ttft(alone(config)) - overhead == pytest.approx(1.2 * (ttft(alone(QUIET)) - overhead))
        assert tpot(alone(config)) == pytest.approx(tpot(alone(QUIET)))

    def test_slower_decode(self) -> None:
        """A tenth more decoding, and not a microsecond of prefill."""
        config = broken(QUIET, "decode-slower")
        assert tpot(alone(config)) == pytest.approx(1.1 * tpot(alone(QUIET)))
        assert ttft(alone(config)) == ttft(alone(QUIET))

    @pytest.mark.parametrize("name", BREAKERS)
    def test_every_breaker_changes_something(self, name: str) -> None:
        """A breaker that changes nothing would let a blind test pass."""
        assert broken(QUIET, name) != QUIET


NOISY = QUIET.changed(
    seed=7,
    prefill_cv=0.01,
    decode_cv=0.02,
    step_cv=0.05,
    session_prefill_cv=0.02,
    session_decode_cv=0.02,
    network_jitter_seconds=0.001,
    draft_tokens=2,
)


def test_the_same_seed_and_arrivals_give_the_same_plan() -> None:
    """Chance hangs on names, not on the order of calls."""
    requests = [arrival(n, at=0.03 * n) for n in range(1, 20)]
    assert simulate(NOISY, requests) == simulate(NOISY, list(reversed(requests)))


def test_another_session_or_seed_gives_another_plan() -> None:
    """Else sessions would be copies."""
    plans = [alone(NOISY), alone(NOISY.changed(session=1)), alone(NOISY.changed(seed=8))]
    assert len({plan[-1].at for plan in plans}) == 3


def test_asking_as_time_passes_gives_the_plan_of_asking_at_the_end() -> None:
    """The server may ask as often and as late as it likes."""
    requests = [arrival(n, at=0.03 * n) for n in range(1, 20)]
    whole = simulate(NOISY, requests)
    timetable = timetable_for(NOISY)
    left: dict[int, list[Departure]] = {request.number: [] for request in requests}
    coming = list(requests)
    for now in accumulate([0.0171] * 600):
        while coming and coming[0].at <= now:
            timetable.arrive(coming.pop(0))
        for departure in timetable.advance(now):
            left[departure.number].append(departure)
    assert left == whole


def test_an_abandoned_request_leaves_the_batch() -> None:
    """What is left decodes as if alone."""
    timetable = timetable_for(QUIET)
    timetable.arrive(arrival(1, prompt=16, output=100))
    timetable.arrive(arrival(2, prompt=16, output=100))
    timetable.abort(2, 0.2)
    rest = timetable.advance(10.0)
    assert {departure.number for departure in rest} == {1}
    assert gaps(rest)[-1] == pytest.approx(gaps(alone(QUIET, prompt=16, output=100))[-1])


def test_order_within_an_answer_survives_a_jittery_network() -> None:
    """A later chunk never overtakes."""
    left = alone(QUIET.changed(network_jitter_seconds=0.1), output=50)
    assert min(gaps(left)) >= 0


def test_an_idle_engine_that_gathers_reads_requests_together_that_come_together() -> None:
    """Without gathering, the first of two that come 0.1 ms apart is read alone."""
    both = [arrival(1), arrival(2, at=0.0001)]
    gathering = simulate(QUIET.changed(gather_seconds=0.002), both)
    assert ttft(gathering[1]) == ttft(gathering[2])
    apart = simulate(QUIET, both)
    assert ttft(apart[1]) < ttft(apart[2])


def test_company_costs_once_however_many_there_are() -> None:
    """The step of two and of three grows by the same; that of one does not."""

    def step(config: SimulatorConfig, streams: int) -> float:
        left = simulate(config, [arrival(n, output=8) for n in range(1, streams + 1)])[streams]
        return left[-1].at - left[-2].at

    for streams, more in ((1, 0.0), (2, 0.01), (3, 0.01)):
        grown = step(QUIET.changed(together_seconds=0.01), streams) - step(QUIET, streams)
        assert grown == pytest.approx(more, abs=1e-9)
