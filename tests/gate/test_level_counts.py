"""What the server counted at a level of load, on its way into the diagnosis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.diagnose.codec import from_json, to_json
from phasegate.diagnose.from_runs import observations_of
from phasegate.stats.counters import Kind, Reading, ServerCounts, counted_between, counted_together
from tests.load_runs import level_run


def figure(counts: ServerCounts | None) -> float | None:
    """The one of the level's situation, through its file."""
    now = observations_of([], levels=[replace(level_run(4, [0.1] * 4), server=counts)])
    (level,) = from_json(to_json(now), "here").levels
    return level.streams_per_step


def page(steps: float, tokens: float) -> dict[str, Reading]:
    """A reading of a server's page."""
    return {"steps": Reading(Kind.COUNTER, steps), "output_tokens": Reading(Kind.COUNTER, tokens)}


def test_the_servers_count_of_streams_in_a_step_reaches_the_situation() -> None:
    """Of what was counted at that level alone, whatever the server did before."""
    assert figure(counted_between(page(10_000, 10_000), page(10_066, 10_256))) == pytest.approx(256 / 66)
    assert figure(ServerCounts({"requests": 4})) is None
    assert figure(None) is None


def test_a_restart_in_one_round_leaves_the_level_without_the_figure() -> None:
    """The server's counters began anew: what is left of them belongs to no known span."""
    whole = counted_between(page(100, 100), page(166, 356))
    restarted = counted_between(page(166, 356), page(60, 400))
    assert figure(counted_together([whole, whole])) == pytest.approx(256 / 66)
    assert figure(counted_together([whole, restarted])) is None


def test_who_waited_ran_and_was_thrown_out_reaches_the_situation() -> None:
    """By sums of the server's times over the level's window, and its count; what it does not tell stays unknown."""
    run = level_run(4, [0.1] * 4)
    told = ServerCounts({"queue": 2 * run.window, "inference": 3 * run.window, "preemptions": 2.0})
    (level,) = observations_of([], levels=[replace(run, server=told)]).levels
    assert level.waiting == pytest.approx(2.0)
    assert level.running == pytest.approx(3.0)
    assert (level.preemptions, level.requests) == (2.0, 4)
    (bare,) = observations_of([], levels=[run]).levels
    assert (bare.waiting, bare.running, bare.preemptions) == (None, None, None)
