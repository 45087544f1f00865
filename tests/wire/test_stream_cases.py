"""Every stream case decodes to exactly what it expects; a field that this file cannot check is a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from phasegate.core.metric import (
    Undefined,
    inter_chunk_latencies,
    request_latency,
    time_per_output_token,
    time_to_first_output_token,
    time_to_first_token,
)
from phasegate.core.timeline import Timeline
from phasegate.wire.estimates import per_token_latencies, time_per_output_token_estimate
from phasegate.wire.openai_stream import ERROR_KINDS, FLAGS, decode
from tests.wire.cases import CASES, recording_of


def _ms(value: float | Undefined | None) -> float | None:
    return None if value is None or isinstance(value, Undefined) else value * 1e3


def _all_ms(values: list[float] | None) -> list[float] | None:
    return None if values is None else [value * 1e3 for value in values]


def _per_choice(line: Timeline) -> dict[int, dict[str, float]]:
    assert line.sent is not None
    found = {}
    for choice in sorted({event.choice for event in line.tokens}):
        moments = [event.at for event in line.tokens if event.choice == choice]
        found[choice] = {"ttft_ms": (moments[0] - line.sent) * 1e3, "chunks": len(moments)}
    return found


SEEN: dict[str, Callable[[Timeline], Any]] = {
    "status": lambda line: line.status,
    "error_kind": lambda line: line.error_kind,
    "ttft_ms": lambda line: _ms(time_to_first_token(line)),
    "ttfc_ms": lambda line: _ms(time_to_first_output_token(line)),
    "tpot_ms": lambda line: _ms(time_per_output_token(line)),
    "tpot_estimate_ms": lambda line: _ms(time_per_output_token_estimate(line)),
    "itl_ms": lambda line: _all_ms(inter_chunk_latencies(line)),
    "itl_per_token_ms": lambda line: _all_ms(per_token_latencies(line)),
    "last_token_ms": lambda line: _ms(request_latency(line)),
    "stream_end_ms": lambda line: line.stream_end * 1e3,
    "output_tokens": lambda line: line.output_tokens,
    "output_tokens_estimate": lambda line: line.output_tokens_estimate,
    "token_source": lambda line: line.token_source,
    "n_token_chunks": lambda line: len(line.tokens),
    "reasoning_tokens": lambda line: line.reasoning_tokens,
    "cached_tokens": lambda line: line.cached_tokens,
    "malformed_events": lambda line: line.malformed_events,
    "finish_reason": lambda line: line.finish_reason,
    "text": lambda line: line.text,
    "reasoning_text": lambda line: line.reasoning_text,
    "tool_text": lambda line: line.tool_text,
    "flags": lambda line: list(line.flags),
    "sample_valid": lambda line: line.sample_valid,
    "per_choice": _per_choice,
    "message_must_name": lambda line: line.error_message,
}
"""Field of ``expected`` -> what the decoded request shows for it."""

NOT_CHECKED = {"accept_also"}
"""Prose about another acceptable answer than the one that is given in fields."""


def mismatches(line: Timeline, expected: dict[str, Any]) -> list[str]:
    """One line for every field that is not as expected, or that nobody checks."""
    wrong = []
    for field, wanted in expected.items():
        if field in NOT_CHECKED:
            continue
        if field not in SEEN:
            wrong.append(f"{field}: no check for this field")
            continue
        seen = SEEN[field](line)
        if not _agrees(field, seen, wanted):
            wrong.append(f"{field}: expected {wanted!r}, got {seen!r}")
    return wrong


def _agrees(field: str, seen: Any, wanted: Any) -> bool:
    if field == "message_must_name":
        return all(word in seen for word in wanted)
    if field == "per_choice":
        return set(seen) == set(wanted) and all(seen[key] == pytest.approx(wanted[key]) for key in wanted)
    if field.endswith("_ms"):
        return bool(seen == pytest.approx(wanted, abs=1e-3))
    return bool(seen == wanted) and type(seen) is type(wanted)


@pytest.mark.parametrize("case_id", sorted(CASES))
def test_a_stream_case_decodes_to_what_it_expects(case_id: str) -> None:
    """Counts, text, flags, outcome and every time are the case's own."""
    case = CASES[case_id]
    assert mismatches(decode(recording_of(case)), case["expected"]) == []


@pytest.mark.parametrize("case_id", sorted(CASES))
def test_a_naive_clients_numbers_are_not_ours(case_id: str) -> None:
    """What a case lists as wrong is not what the decoder says."""
    line = decode(recording_of(CASES[case_id]))
    for wrong in CASES[case_id].get("wrong", []):
        claims = {field: value for field, value in wrong.items() if field in SEEN}
        assert mismatches(line, claims), f"agrees with {wrong['by']}"


def test_every_stream_case_is_there() -> None:
    """The folder holds 40 or more stream cases; an empty glob would pass everything else."""
    assert len(CASES) >= 40


def test_the_comparison_sees_a_wrong_value_of_every_field() -> None:
    """Shown failing: each field of each case, once replaced by a wrong value, is reported."""
    for case in CASES.values():
        line = decode(recording_of(case))
        for field in set(case["expected"]) - NOT_CHECKED:
            wrong = (
                ["no such word"]
                if field == "message_must_name"
                else {7: {"chunks": -1}}
                if field == "per_choice"
                else -77
            )
            assert mismatches(line, {field: wrong}), f"{case['id']}: {field} is not really compared"


def test_an_unknown_expectation_is_a_failure() -> None:
    """Shown failing: a case may not expect what nobody checks."""
    line = decode(recording_of(CASES["B001"]))
    assert mismatches(line, {"ttft_seconds": 0.2}) == ["ttft_seconds: no check for this field"]


def test_flags_and_error_kinds_come_from_the_published_vocabulary() -> None:
    """No case yields a word that the reference does not explain."""
    for case in CASES.values():
        line = decode(recording_of(case))
        assert set(line.flags) <= set(FLAGS)
        assert line.error_kind is None or line.error_kind in ERROR_KINDS or line.error_kind.startswith("http_")
