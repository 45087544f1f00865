"""A rate limit is kept between measurements and never enters one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Expected, Recording
from phasegate.engines.simulator.config import SimulatorConfig
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.faults import Fault, FaultRule
from phasegate.load.rate_limit import LONGEST, TRIES, RateLimit, asked_pause, run_within_rate_limit
from phasegate.wire.openai_stream import decode

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=timezone.utc)


def refusal(*headers: tuple[str, str]) -> Recording:
    return Recording("r", 0.0, 0.0, 0.0, 429, headers, 0.1, (), Ending.EOF, 0.1)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        (format_datetime(NOW + timedelta(seconds=30), usegmt=True), 30.0),
        (format_datetime(NOW - timedelta(seconds=30), usegmt=True), 0.0),
        ("-3", 0.0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(said: str, seconds: float | None) -> None:
    assert asked_pause(refusal(("retry-after", said)), NOW) == seconds


def test_no_header_asks_for_nothing() -> None:
    assert asked_pause(refusal(), NOW) is None


def test_without_a_word_the_pauses_double_and_end() -> None:
    pauses: list[float] = []
    rate_limit = RateLimit(pause=pauses.append)
    accepted = [rate_limit.accepts(refusal()) for _ in range(TRIES)]
    assert accepted == [True] * (TRIES - 1) + [False]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_a_pause_beyond_all_patience_is_a_quota_and_not_waited_for() -> None:
    pauses: list[float] = []
    rate_limit = RateLimit(pause=pauses.append)
    assert not rate_limit.accepts(refusal(("retry-after", str(LONGEST + 1))))
    assert pauses == []


def test_after_a_round_of_load_the_longest_pause_is_waited_once() -> None:
    pauses: list[float] = []
    rate_limit = RateLimit(pause=pauses.append)
    rate_limit.rest([refusal(("retry-after", "2")), refusal(("retry-after", "5")), refusal()])
    assert pauses == [5.0]
    assert rate_limit.refusals == 3
    assert rate_limit.note is not None


class Limited:
    """A simulated server that refuses some requests, and what came of a list of them."""

    def __init__(self, *rules: FaultRule) -> None:
        self.engine = SimulatorEngine(SimulatorConfig(speed=20.0, faults=rules))

    def __enter__(self) -> Limited:
        self.engine.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.stop()

    def requests(self, count: int) -> list[Request]:
        body = {"messages": [{"role": "user", "content": "one two three"}], "max_tokens": 3, "ignore_eos": True}
        return [Request(f"q{number}", "chat", body, Expected(endpoint="chat", max_tokens=3)) for number in range(count)]

    @property
    def target(self) -> Target:
        return Target(self.engine.base_url, self.engine.model)


@pytest.fixture
def third_refused() -> Iterator[Limited]:
    """The third request that arrives is answered with 429 and Retry-After: 9."""
    with Limited(FaultRule(Fault.HTTP_429, at=(3,), seconds=9.0)) as server:
        yield server


def test_a_refused_request_is_sent_again_after_the_pause_and_no_latency_knows(third_refused: Limited) -> None:
    pauses: list[float] = []
    seen: list[tuple[int, str]] = []
    rate_limit = RateLimit(pause=pauses.append)
    result = run_within_rate_limit(
        third_refused.target,
        third_refused.requests(5),
        rate_limit,
        on_done=lambda place, one: seen.append((place, one.request_id)),
    )
    lines = [decode(one) for one in result.recordings]
    assert [line.status for line in lines] == ["ok"] * 5
    assert [one.request_id for one in result.recordings] == ["q0", "q1", "q2.2", "q3", "q4"]
    assert seen == [(0, "q0"), (1, "q1"), (2, "q2.2"), (3, "q3"), (4, "q4")]
    assert pauses == [9.0]
    assert not result.partial
    assert rate_limit.note == "the server refused once with 429; 9.00 s were waited, between requests"


def test_a_server_that_goes_on_refusing_is_counted_as_such() -> None:
    with Limited(FaultRule(Fault.HTTP_429, every=1, seconds=0.0)) as server:
        rate_limit = RateLimit(pause=lambda _: None)
        result = run_within_rate_limit(server.target, server.requests(2), rate_limit)
    assert [one.http_status for one in result.recordings] == [429, 429]
    assert rate_limit.refusals == 2 * TRIES


def test_nothing_to_send_is_nothing_sent() -> None:
    with Limited() as server:
        assert run_within_rate_limit(server.target, [], RateLimit()).recordings == ()
