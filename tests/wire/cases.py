"""The stream cases as recordings: every read, moment and ending as the case states it, zero being the send."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from phasegate.core.timeline import Ending, Expected, Read, Recording

FIXTURES = Path(__file__).parents[2] / "fixtures"

_ENDINGS = {"eof": Ending.EOF, "incomplete_chunked": Ending.INCOMPLETE}

KNOWN_INPUT = {"request", "http_status", "headers", "client", "events", "close"}
KNOWN_REQUEST = {"stream", "include_usage", "max_tokens", "ignore_eos", "expect_output_tokens", "n"}


def load_stream_cases() -> dict[str, dict[str, Any]]:
    """Every case of type ``stream``, by its id."""
    cases = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FIXTURES.glob("cases/*.yaml"))]
    return {case["id"]: case for case in cases if case["type"] == "stream"}


CASES = load_stream_cases()


def recording_of(case: dict[str, Any]) -> Recording:
    """The case as the client would have recorded it, in seconds since the send."""
    given = case["input"]
    assert set(given) <= KNOWN_INPUT, f"{case['id']}: input fields this test does not know"
    reads = tuple(Read(event["at_ms"] / 1e3, _bytes_of(event)) for event in given["events"])
    ending, ended_at = _ending_of(given, reads)
    return Recording(
        request_id=case["id"],
        due=0.0,
        sent=0.0,
        connect_time=0.0,
        http_status=given["http_status"],
        headers=tuple(given.get("headers", {}).items()),
        headers_at=reads[0].at if reads else None,
        reads=reads,
        ending=ending,
        ended_at=ended_at,
        expected=_expected_of(case),
    )


def _bytes_of(event: dict[str, Any]) -> bytes:
    if "data_b64" in event:
        return base64.b64decode(event["data_b64"])
    text: str = event["data"]
    return text.encode()


def _ending_of(given: dict[str, Any], reads: tuple[Read, ...]) -> tuple[Ending, float]:
    close = given["close"]
    if close["how"] == "open":
        return Ending.IDLE_TIMEOUT, reads[-1].at + given["client"]["idle_timeout_ms"] / 1e3
    return _ENDINGS[close["how"]], close["at_ms"] / 1e3


def _expected_of(case: dict[str, Any]) -> Expected:
    request = case["input"].get("request", {})
    assert set(request) <= KNOWN_REQUEST, f"{case['id']}: request fields this test does not know"
    return Expected(
        max_tokens=request.get("max_tokens"),
        output_tokens=request.get("expect_output_tokens"),
        choices=request.get("n", 1),
    )
