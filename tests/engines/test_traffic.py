"""The limits of a run: what is sent is counted, what would pass a limit is not sent, and plans leave room."""

from __future__ import annotations

import pytest

from phasegate.core.prompt_vocabulary import COMMON_WORDS
from phasegate.core.request import Request
from phasegate.core.timeline import Expected
from phasegate.core.token_budget import LimitReachedError, Spending, counting_spending
from phasegate.load.traffic import RESERVE, Traffic, asked_by
from tests.timelines import timeline


def request(prompt_tokens: int | None = 60, output_tokens: int = 20, text: str = "x") -> Request:
    body = {"messages": [{"role": "user", "content": text}]}
    return Request("r", "chat", body, Expected(max_tokens=output_tokens, prompt_tokens=prompt_tokens))


def test_what_would_pass_the_cap_is_not_sent_and_the_rest_is_named() -> None:
    traffic = Traffic(most_tokens=200)
    assert traffic.allowed([request(), request()]) == (2, None)
    count, reason = traffic.allowed([request(), request(), request()])
    assert count == 2
    assert reason is not None
    assert reason.startswith("--perf-max-tokens-spent 200 is used up: 0 tokens were asked for")


def test_requests_that_belong_together_go_all_or_not_at_all() -> None:
    traffic = Traffic(most_tokens=150)
    traffic.must_allow([request()])
    with pytest.raises(LimitReachedError, match="--perf-max-tokens-spent 150"):
        traffic.must_allow([request(), request()])


def test_a_prompt_that_nobody_counted_is_guessed_high() -> None:
    assert asked_by(request(None, 1, "word " * 20)).tokens >= 20 + 1
    marked = [{"type": "text", "text": "word " * 10}, {"type": "text", "text": "word " * 10}]
    assert asked_by(Request("r", "chat", {"messages": [{"role": "user", "content": marked}]})).input_tokens >= 20


def test_time_is_up_a_little_before_the_budget_so_that_the_run_ends_within_it() -> None:
    now = 0.0
    traffic = Traffic(budget=100.0, started=0.0, clock=lambda: now)
    assert not traffic.out_of_time()
    now = 100.0 * (1 - RESERVE)
    assert traffic.out_of_time()
    assert traffic.allowed([request()])[0] == 0
    assert str(traffic.why_not()).startswith("--perf-budget 1.7 min is used up; allow more, or measure less")


def test_what_is_added_leaves_room_for_what_is_planned() -> None:
    traffic = Traffic(most_tokens=1000, planned=Spending(10, 600, 200))
    assert traffic.why_not_more(Spending(1, 100, 50)) is None
    assert traffic.planned == Spending(11, 700, 250)
    assert traffic.why_not_more(Spending(1, 100, 50)) == "--perf-max-tokens-spent 1000 leaves no tokens for more"
    assert traffic.planned == Spending(11, 700, 250)


def test_time_for_what_is_planned_is_not_given_away() -> None:
    """Ten planned requests of a second leave no room for ten more in 15 s."""
    traffic = Traffic(budget=15.0, started=0.0, clock=lambda: 0.0, planned=Spending(11, 110, 22))
    asked = Expected(prompt_tokens=10, max_tokens=2)
    traffic.count([timeline(ttft=0.5, tpot=0.5, tokens=2, expected=asked)], alone=True)
    assert traffic.sent.requests == 1
    assert traffic.why_not_more(Spending(10, 100, 20)) == "--perf-budget 15.0 s leaves no time for more"
    assert traffic.why_not_more(Spending(1, 10, 2)) is None


def test_failures_and_unfit_answers_are_counted_where_they_are_sent() -> None:
    traffic = Traffic()
    traffic.count([timeline(), timeline(status="error"), timeline(sample_valid=False)])
    assert (traffic.sent.requests, traffic.failed, traffic.unfit) == (3, 1, 1)


def test_counting_a_known_vocabulary_takes_two_requests_and_an_unknown_one_some_dozen() -> None:
    assert counting_spending(COMMON_WORDS, known=True).requests == 2
    assert counting_spending(COMMON_WORDS, known=False).requests == 26
