"""Whether a run reached its load: a shortfall is one line with its numbers and a remedy, a good run is silent."""

import dataclasses
import math
from collections.abc import Sequence

import pytest

from phasegate.core.timeline import Ending, Recording
from phasegate.load.driving import LoadResult
from phasegate.load.health import ClientHealth
from phasegate.load.load_check import load_problem
from phasegate.load.pacing import Rate, even
from phasegate.load.shapes import Shape

WELL = ClientHealth(0.001, 0.002, 0.1, 0.1, 0, 0.0, 100, 0.0001, 0.001)
OPEN = Shape(rate=Rate.constant(10))
CLOSED = Shape(max_concurrency=4)


def recording(number: int, due: float, sent: float | None, ending: Ending = Ending.EOF) -> Recording:
    status = None if sent is None else 200
    return Recording(f"r{number}", due, sent, 0.001, status, (), None, (), ending, (sent or due) + 0.5)


def ran(delays: Sequence[float | None], **changes: object) -> LoadResult:
    """An open loop at ten requests a second whose requests were sent so late; None was refused."""
    recordings = tuple(
        recording(
            n, due, None if delay is None else due + delay, Ending.EOF if delay is not None else Ending.CONNECT_FAILED
        )
        for n, (due, delay) in enumerate(zip(even(Rate.constant(10), len(delays)), delays, strict=True))
    )
    result = LoadResult(recordings, WELL, None, 5, 0.0, 10.0, (), False, {}, scheduled=True)
    return dataclasses.replace(result, **changes)  # type: ignore[arg-type]


def test_a_run_on_schedule_has_no_problem() -> None:
    """Delays of a millisecond are the timer's own; refused connections are the server's doing and no shortfall."""
    assert load_problem(ran([0.001] * 100), OPEN) is None
    assert load_problem(ran([0.001] * 50 + [None] * 50), OPEN) is None


def test_a_rate_that_was_not_reached_is_said_with_both_numbers() -> None:
    """Each request 100 ms later than the one before: five a second where ten were due."""
    said = load_problem(ran([number * 0.1 for number in range(50)]), OPEN)
    assert said is not None
    assert "5 requests/s were sent where 10 requests/s were due (-50.0 %" in said
    assert "a core of its own" in said


def test_the_cap_is_blamed_where_it_was_the_cause() -> None:
    """With all places taken the remedy is another one."""
    result = ran([number * 0.1 for number in range(50)], max_concurrency=2, peak_in_flight=2)
    said = load_problem(result, dataclasses.replace(OPEN, max_concurrency=2))
    assert said is not None
    assert "one of 2 places: raise --perf-max-concurrency" in said


def test_a_shortfall_within_the_limit_passes_and_beyond_it_does_not() -> None:
    """Four percent slower, and six: the border lies between, given that delays are not judged."""
    slower = [[number * 0.1 * share / (1 - share) for number in range(101)] for share in (0.04, 0.06)]
    assert load_problem(ran(slower[0]), OPEN, delay_limit=100.0) is None
    assert load_problem(ran(slower[1]), OPEN, delay_limit=100.0) is not None


def test_late_requests_are_said_although_the_rate_was_reached() -> None:
    """Two in a hundred 80 ms late do not move the rate but are not the schedule; one in a hundred is below p99."""
    said = load_problem(ran([0.001] * 98 + [0.08, 0.08]), OPEN)
    assert said is not None
    assert "80.0 ms after they were due" in said
    assert load_problem(ran([0.001] * 50 + [0.08] + [0.001] * 49), OPEN) is None
    assert load_problem(ran([0.001] * 98 + [0.08, 0.08]), OPEN, delay_limit=0.1) is None


def test_a_late_client_is_the_first_thing_said() -> None:
    """Its event loop's lag explains everything after it."""
    late = ran([0.2] * 100, health=dataclasses.replace(WELL, loop_lag_p99=0.2))
    said = load_problem(late, OPEN)
    assert said is not None
    assert "event loop ran 200 ms late" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"interrupted": True}, "stopped after 10 of 10"),
        ({"unsent": ("a", "b")}, "stopped after 10 of 12"),
        ({"unsent": ("a",), "server_gone": True}, "stopped taking connections; 10 of 11"),
    ],
)
def test_a_run_that_ended_early_is_said(changes: dict[str, object], words: str) -> None:
    """By Ctrl-C, by the caller, by the server."""
    assert words in (load_problem(ran([0.001] * 10, **changes), OPEN) or "")


def test_nothing_planned_proves_nothing() -> None:
    """An empty run is not a good one."""
    assert "at least one" in (load_problem(ran([]), OPEN) or "")


def test_a_concurrency_that_was_not_reached_is_said() -> None:
    """In a closed loop; too few requests have a remedy of their own."""
    base = dataclasses.replace(ran([0.0] * 8), scheduled=False, max_concurrency=4, peak_in_flight=4)
    assert load_problem(base, CLOSED) is None
    said = load_problem(dataclasses.replace(base, peak_in_flight=3), CLOSED)
    assert said is not None
    assert "3 requests were in flight at a time where 4 were asked for" in said
    few = dataclasses.replace(base, max_concurrency=16, peak_in_flight=8)
    assert "--perf-num-prompts to at least 16" in (load_problem(few, Shape(max_concurrency=16)) or "")


def test_a_closed_loop_has_no_rate_to_reach() -> None:
    """Its requests are due when they are sent."""
    closed = dataclasses.replace(ran([0.5] * 8), scheduled=False, max_concurrency=4)
    assert closed.requested_rate is None
    assert load_problem(closed, CLOSED) is None


def test_everything_at_once_through_so_many_places_is_a_closed_loop() -> None:
    """As other tools spell it: nobody is late for a schedule, the places must have been taken."""
    asked = Shape(rate=Rate.constant(math.inf), max_concurrency=4)
    result = ran([number * 0.1 for number in range(50)], max_concurrency=4, peak_in_flight=4)
    assert load_problem(result, asked) is None
    said = load_problem(dataclasses.replace(result, peak_in_flight=3), asked)
    assert said is not None
    assert "3 requests were in flight at a time where 4 were asked for" in said


@pytest.mark.parametrize("answered", [0, 5, 40])
def test_a_closed_loop_that_ends_at_closed_doors_has_lost_its_server(answered: int) -> None:
    """The rest of the list is over within milliseconds, long before anything could be called gone meanwhile."""
    dead = dataclasses.replace(ran([0.0] * answered + [None] * 25), scheduled=False, max_concurrency=4)
    said = load_problem(dataclasses.replace(dead, peak_in_flight=4 if answered else 0), CLOSED)
    assert said is not None
    assert f"takes no connection any more, 25 of {answered + 25} requests found none" in said


def test_a_closed_loop_that_recovers_has_not() -> None:
    """Refusals before good answers are the measurement."""
    alive = dataclasses.replace(ran([None] * 25 + [0.0] * 4), scheduled=False, max_concurrency=4, peak_in_flight=4)
    assert load_problem(alive, CLOSED) is None
