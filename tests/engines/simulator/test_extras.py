"""Reasoning before an answer, the server's own timings after it, and prefill and decode in two pools."""

from __future__ import annotations

import pytest

from phasegate.core.timeline import Channel
from phasegate.engines.simulator.config import Reasoning, Speculation
from phasegate.engines.simulator.extras import Extras, Part
from phasegate.engines.simulator.timetable import simulate
from tests.engines.simulator.arrivals import QUIET, alone, arrival, gaps, tpot, ttft
from tests.load_runs import load_lab_on


def test_reasoning_and_text_never_share_an_event() -> None:
    """A chunk across the border becomes two; hidden reasoning becomes none."""
    streamed = Extras(reasoning_tokens=5)
    assert list(streamed.parts(3, 4)) == [Part(3, 2, reasoning=True), Part(5, 2, reasoning=False)]
    assert list(streamed.parts(0, 2)) == [Part(0, 2, reasoning=True)]
    hidden = Extras(reasoning_tokens=5, streamed=False)
    assert list(hidden.parts(3, 4)) == [Part(5, 2, reasoning=False)]
    assert list(hidden.parts(0, 5)) == []
    assert list(Extras().parts(0, 5)) == [Part(0, 5, reasoning=False)]


@pytest.mark.parametrize("reasoning", list(Reasoning))
def test_the_client_sees_reasoning_as_the_settings_say(reasoning: Reasoning) -> None:
    """Streamed on its own channel, or counted and never sent; the counts are the same."""
    with load_lab_on(reasoning_tokens=20, reasoning=reasoning, report_timings=True) as load:
        request = load.runner.fresh_requests("chat", 64, 32, 1)[0]
        line = load.runner.send_one(request.body["messages"][0]["content"], request.expected, 32)  # type: ignore[index]
    channels = [event.channel for event in line.tokens]
    assert channels.count(Channel.CONTENT) == 12
    assert channels.count(Channel.REASONING) == (20 if reasoning is Reasoning.STREAMED else 0)
    assert (line.output_tokens, line.reasoning_tokens) == (32, 20)
    assert line.server_timings is not None
    # 64 tokens at 1,600 a second and one step, five times as fast as real time.
    assert line.server_timings["prompt_ms"] == pytest.approx((64 / 1600 + 0.0075) * 1000 / 5, rel=0.05)
    assert "draft_n" not in line.server_timings


def test_drafts_are_counted_as_they_are_guessed() -> None:
    """Every step after the first guesses three tokens; those that were right made the answer that much shorter."""
    config = QUIET.changed(draft_tokens=3, draft_acceptance=0.5, seed=4)
    course_steps = len(alone(config, output=60)) - 1
    with load_lab_on(draft_tokens=3, draft_acceptance=0.5, report_timings=True) as load:
        request = load.runner.fresh_requests("chat", 64, 60, 1)[0]
        line = load.runner.send_one(request.body["messages"][0]["content"], request.expected, 60)  # type: ignore[index]
    assert line.server_timings is not None
    drafted, accepted = line.server_timings["draft_n"], line.server_timings["draft_n_accepted"]
    assert drafted == 3 * (len(line.tokens) - 1)
    assert 0.15 < accepted / drafted < 0.5
    assert 60 / 4 < course_steps < 60


TWO = QUIET.changed(disaggregated=True, handoff_seconds=0.05)


def test_the_hand_off_stands_between_the_first_and_the_second_token() -> None:
    """TTFT and TPOT after it are those of one machine."""
    one, two = alone(QUIET), alone(TWO)
    assert ttft(two) == ttft(one)
    assert gaps(two)[0] == pytest.approx(gaps(one)[0] + 0.05)
    assert gaps(two)[1:] == pytest.approx(gaps(one)[1:])


def test_a_long_prompt_stalls_nobody_who_decodes_elsewhere() -> None:
    """On one machine without chunks it does, for as long as it is read."""
    together = [arrival(1, output=64), arrival(2, at=0.2, prompt=2048, output=2)]
    one = simulate(QUIET.changed(chunked_prefill=False), together)
    two = simulate(TWO.changed(chunked_prefill=False), together)
    assert max(gaps(one[1])) > 1.0
    assert max(gaps(two[1])[1:]) < 0.02


def test_pools_keep_every_token_under_pressure() -> None:
    """With little memory requests are thrown out and read again, and each answer is complete all the same."""
    config = TWO.changed(context_limit=256, kv_capacity_tokens=400, max_sequences=4)
    left = simulate(config, [arrival(n, at=n * 0.01, prompt=100, output=50) for n in range(1, 9)])
    for departures in left.values():
        assert sum(one.tokens for one in departures) == 50
        assert departures[-1].last
        assert all(gap >= 0 for gap in gaps(departures))


def test_a_request_that_is_given_up_leaves_both_pools() -> None:
    """Before the hand-off, during it, and after it."""
    from phasegate.engines.simulator.timetable import timetable_for

    for at in (0.01, 0.07, 0.2):
        table = timetable_for(TWO)
        table.arrive(arrival(1, output=64))
        table.advance(at)
        table.abort(1, at)
        assert (table.running, table.waiting, table.kv_tokens) == (0, 0, 0)
        assert all(one.number != 1 for one in table.advance(10.0))


def test_bursts_and_chunks_have_the_same_pace() -> None:
    """TPOT counts tokens, whatever way they are packed."""
    drafts = QUIET.changed(draft_tokens=4, draft_acceptance=0.8)
    chunk, burst = (alone(drafts.changed(speculation=kind), output=80) for kind in Speculation)
    assert len(chunk) < len(burst) == 80
    assert tpot(chunk) == pytest.approx(tpot(burst))
