"""Timelines made to measure, for tests that do not care about bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from phasegate.core.timeline import Channel, Expected, Timeline, TokenEvent


def timeline(ttft: float = 0.1, tpot: float = 0.01, tokens: int = 5, **changes: Any) -> Timeline:
    """A request sent at moment 100 s whose first token came ``ttft`` later and the others every ``tpot``."""
    events = tuple(TokenEvent(100.0 + ttft + i * tpot, Channel.CONTENT, f" w{i}") for i in range(tokens))
    line = Timeline(
        request_id="r1",
        status="ok",
        error_kind=None,
        error_message=None,
        due=100.0,
        sent=100.0,
        connect_time=0.001,
        tokens=events,
        output_tokens=tokens,
        token_source="usage",
        output_tokens_estimate=None,
        prompt_tokens=64,
        cached_tokens=None,
        reasoning_tokens=None,
        finish_reason="length",
        choices=1,
        flags=(),
        malformed_events=0,
        first_byte=100.0 + ttft,
        stream_end=100.0 + ttft + tokens * tpot,
        server_timings=None,
        model="m",
        sample_valid=True,
        expected=Expected(),
    )
    return replace(line, **changes)


def failed(kind: str = "http_500", message: str = "broken") -> Timeline:
    """A request that failed before any token."""
    return timeline(
        tokens=0, status="error", error_kind=kind, error_message=message, output_tokens=None, sample_valid=False
    )
