"""Streams of engines that are not run here, byte for byte in the shape their documentation gives: what is read of them.

``streams.yaml`` names the page for each. Moments are exact here; `test_replayed_servers` sends the same bytes over a
socket.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.core.metric import (
    Undefined,
    request_latency,
    time_per_output_token,
    time_to_first_output_token,
    time_to_first_token,
)
from phasegate.core.timeline import Read, Timeline
from phasegate.engines.profile import profile_named, profiles
from phasegate.wire.decoding import decode
from tests.engines.replay.streams import DOCUMENTED, FOLDER, STEP, Documented

ANSWERED = {name: one for name, one in DOCUMENTED.items() if "error" not in one.expect}
FAILED = {name: one for name, one in DOCUMENTED.items() if "error" in one.expect}


def read_wrongly(stream: Documented, line: Timeline) -> list[str]:
    """What of a stream was read otherwise than its entry says; one line each."""
    expect = stream.expect
    wanted: dict[str, object] = {
        "ttft": expect["first"] * STEP,
        "ttfo": expect.get("answer", expect["first"]) * STEP,
        "latency": expect["last"] * STEP,
        "tokens": expect.get("tokens"),
        "counted by": expect.get("counted_by"),
        "prompt": expect.get("prompt"),
        "cached": expect.get("cached"),
        "reasoning tokens": expect.get("reasoning_tokens"),
        "finish": expect["finish"],
        "text": expect["text"],
        "reasoning": expect.get("reasoning", ""),
        "tool": expect.get("tool", ""),
        "flags": tuple(expect.get("flags", ())),
        "tpot": _wanted_tpot(stream),
    }
    tpot = time_per_output_token(line)
    found: dict[str, object] = {
        "ttft": time_to_first_token(line),
        "ttfo": time_to_first_output_token(line),
        "latency": request_latency(line),
        "tokens": line.output_tokens,
        "counted by": line.token_source,
        "prompt": line.prompt_tokens,
        "cached": line.cached_tokens,
        "reasoning tokens": line.reasoning_tokens,
        "finish": line.finish_reason,
        "text": line.text,
        "reasoning": line.reasoning_text,
        "tool": line.tool_text,
        "flags": line.flags,
        "tpot": "undefined" if isinstance(tpot, Undefined) else tpot,
    }
    return [f"{key}: {found[key]!r} instead of {wanted[key]!r}" for key in wanted if found[key] != _near(wanted[key])]


def _near(value: object) -> object:
    return pytest.approx(value, abs=1e-9) if isinstance(value, float) else value


def _wanted_tpot(stream: Documented) -> object:
    expect = stream.expect
    streamed = expect.get("streamed", expect.get("tokens"))
    if streamed is None or expect.get("tpot") == "undefined":
        return "undefined"
    return (expect["last"] - expect["first"]) * STEP / (streamed - 1)


@pytest.mark.parametrize("name", sorted(ANSWERED))
def test_a_documented_stream_is_read_as_documented(name: str) -> None:
    """Moments, counts and where they come from, texts by channel, finish and flags."""
    stream = ANSWERED[name]
    line = decode(stream.recording())
    assert line.status == "ok"
    assert read_wrongly(stream, line) == []


@pytest.mark.parametrize("name", sorted(FAILED))
def test_a_documented_failure_is_one(name: str) -> None:
    """With HTTP 200 and after tokens all the same."""
    stream = FAILED[name]
    line = decode(stream.recording())
    assert (line.status, line.error_kind) == ("error", stream.expect["error"])
    assert line.error_message is not None
    assert stream.expect["says"] in line.error_message
    assert not line.sample_valid


def test_a_stream_that_comes_one_block_late_is_seen() -> None:
    """Shown failing: the comparison tells a TTFT that is one block off."""
    stream = ANSWERED["tgi-chat"]
    recording = stream.recording()
    late = tuple(Read(read.at + STEP, read.data) for read in recording.reads)
    assert [line.split(":")[0] for line in read_wrongly(stream, decode(replace(recording, reads=late)))] == [
        "ttft",
        "ttfo",
        "latency",
    ]


def test_every_stream_names_its_page_and_its_origin() -> None:
    """The page is one of its profile's or beside it, and no stream file is without an entry."""
    for stream in DOCUMENTED.values():
        profile = profile_named(stream.profile)
        hosts = {page.split("/")[2] for page in profile.sources}
        assert stream.source.split("/")[2] in hosts
        assert stream.how in ("written from documentation", "captured")
        assert stream.endpoint in profile.endpoints
    assert {path.stem for path in (FOLDER / "streams").iterdir()} == set(DOCUMENTED)


def test_every_profile_that_says_replayed_is() -> None:
    """And none is replayed that says otherwise."""
    replayed = {profile.name for profile in profiles() if profile.proof == "replayed"}
    assert replayed == {stream.profile for stream in DOCUMENTED.values() if stream.how != "captured"}
