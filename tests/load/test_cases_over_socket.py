"""Every stream case, played over a real socket through the real client, decodes to what the case expects.

All cases are played in one closed loop, long ones faster; their moments are checked by the decoder's own
tests, not here.
"""

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Ending, Recording
from phasegate.load.closed import run_closed
from phasegate.wire.openai_stream import decode
from tests.loopback import Answer, Loopback, Served
from tests.wire.cases import CASES, recording_of

LONGEST = 0.4
"""Seconds a case may take; longer ones are played faster."""

IDLE = 1.0
"""Idle deadline: longer than any pause of a case at that pace."""

ENDINGS = {Ending.EOF: "end", Ending.INCOMPLETE: "cut", Ending.IDLE_TIMEOUT: "hang"}

FROM_READS = {"buffered", "burst"}
"""Flags of events that share a read. A busy machine may join reads that a case keeps apart, never the reverse."""


def script(served: Served) -> Answer:
    wanted = recording_of(CASES[served.body["user"]])
    faster = min(1.0, LONGEST / max(wanted.ended_at, LONGEST))
    return Answer(
        pieces=[(read.at * faster, read.data) for read in wanted.reads],
        status=wanted.http_status or 200,
        headers=wanted.headers,
        ending=ENDINGS[wanted.ending],
    )


@pytest.fixture(scope="module")
def recorded() -> dict[str, Recording]:
    """What the real client recorded of each case."""
    requests = [Request(name, "chat", {"user": name}, recording_of(CASES[name]).expected) for name in CASES]
    with Loopback(script) as server:
        result = run_closed(Target(server.base_url, "m", idle_timeout=IDLE), requests, max_concurrency=12)
    return {recording.request_id: recording for recording in result.recordings}


@pytest.mark.parametrize("name", CASES)
def test_a_case_over_a_real_socket_decodes_as_expected(name: str, recorded: dict[str, Recording]) -> None:
    """Status, kind of error, text, counts and flags are the case's own; so are the bytes."""
    case, recording, wanted = CASES[name], recorded[name], recording_of(CASES[name])
    assert recording.ending is wanted.ending, recording.detail
    assert recording.http_status == wanted.http_status
    assert b"".join(read.data for read in recording.reads) == b"".join(read.data for read in wanted.reads)
    got, paper = decode(recording), decode(wanted)
    assert got.status == case["expected"]["status"]
    assert got.error_kind == case["expected"].get("error_kind", paper.error_kind)
    assert got.text == case["expected"].get("text", paper.text)
    assert got.output_tokens == paper.output_tokens
    assert got.token_source == paper.token_source
    assert set(got.flags) - FROM_READS == set(paper.flags) - FROM_READS
    assert not FROM_READS & set(paper.flags) or FROM_READS & set(got.flags)


def test_a_broken_end_would_be_noticed() -> None:
    """The same comparison fails when the server stops before the end mark: this check can fail."""
    wanted = recording_of(CASES["B001"])
    with Loopback(Answer(pieces=[(0.0, wanted.reads[0].data)], ending="cut")) as server:
        result = run_closed(Target(server.base_url, "m"), [Request("x", "chat", {})], max_concurrency=1)
    got = decode(result.recordings[0])
    assert got.status == "error"
    assert got.error_kind == "connection_lost" != decode(wanted).error_kind
