"""What stands where a count belongs and is none: said in the server's own words, and never used."""

from __future__ import annotations

from typing import Any

import pytest

from phasegate.core.metric import Undefined, time_per_output_token
from phasegate.core.timeline import Timeline
from tests.wire.streams import DONE, STOP, event, line_of, said, usage

WORDS = [said(" a"), said(" b"), said(" c")]


def answer(**usage_chunk: Any) -> Timeline:
    """Three words, an end, and a last chunk."""
    return line_of(*WORDS, STOP, event({"choices": [], **usage_chunk}), DONE)


def why(line: Timeline) -> str:
    """Why TPOT is undefined."""
    tpot = time_per_output_token(line)
    assert isinstance(tpot, Undefined)
    return tpot.reason


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        ("48", "'48'"),
        (-48, "-48"),
        (True, "true"),
        (None, "null"),
        (10**12, "1000000000000"),
        (1.5, "1.5"),
        ([3], "a list"),
        ({"n": 3}, "an object"),
    ],
)
def test_a_bad_count_is_named_with_its_value(counted: Any, shown: str) -> None:
    """So that nobody looks for usage that did come."""
    line = answer(usage={"completion_tokens": counted, "prompt_tokens": 5})
    assert why(line) == f"no proven output token count (usage.completion_tokens is {shown}, which is no count)"


def test_a_report_without_the_count_or_of_another_kind_says_so() -> None:
    """Both are usage that came, and count nothing."""
    assert "usage.completion_tokens is missing" in why(answer(usage={"input_tokens": 5, "output_tokens": 3}))
    assert "usage is 'many', which is no report" in why(answer(usage="many"))
    assert "usage is a list, which is no report" in why(answer(usage=[1]))


def test_no_report_is_called_no_usage() -> None:
    """Null stands on every chunk of many servers, and says nothing."""
    assert "(the server sent no usage)" in why(answer(usage=None))
    assert "(the server sent no usage)" in why(line_of(*WORDS, STOP, DONE))


def test_a_strange_value_is_short_and_holds_no_key() -> None:
    """A server may echo anything."""
    reason = why(answer(usage={"completion_tokens": "sk-verysecret123 " + "x" * 5000}))
    assert "verysecret" not in reason
    assert len(reason) < 200


def test_a_good_count_forgives_an_earlier_bad_one() -> None:
    """The last report stands."""
    line = line_of(*WORDS, STOP, event({"choices": [], "usage": {"completion_tokens": "3"}}), usage(3), DONE)
    assert (line.output_tokens, line.count_problem) == (3, None)


def test_more_cached_tokens_than_the_prompt_has_are_not_used() -> None:
    """And the flag says so; as many as the prompt has are believed."""
    impossible, whole = (
        answer(usage={"completion_tokens": 3, "prompt_tokens": 105, "prompt_tokens_details": {"cached_tokens": n}})
        for n in (210, 105)
    )
    assert (impossible.cached_tokens, impossible.flags, impossible.sample_valid) == (None, ("cached_impossible",), True)
    assert (whole.cached_tokens, whole.flags) == (105, ("cached_prompt",))
