"""Wherever the network cuts the bytes, the events are the same, each at the moment of the read that completed it."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasegate.core.timeline import Read, Recording
from phasegate.load.answer import unframe
from phasegate.wire.decoding import decode
from phasegate.wire.sse import Event, EventParser
from tests.engines.replay.streams import DOCUMENTED
from tests.wire.captures import CAPTURES
from tests.wire.cases import CASES, recording_of

RECORDINGS = {
    **{case_id: recording_of(case) for case_id, case in CASES.items()},
    **{name: capture.recording() for name, capture in CAPTURES.items()},
    **{name: stream.recording() for name, stream in DOCUMENTED.items() if stream.endpoint == "messages"},
    "openrouter-chat": DOCUMENTED["openrouter-chat"].recording(),
}

HARD = (
    b"\xef\xbb\xbf: hi\r\ndata: \xe4\xbd\xa0\r\ndata:\xf0\x9f\x99\x82\r\n\r\nevent: error\rdata: a\r\rdata\n\n"
    b"retry: 1\n\ndata: b\r\n\ndata: c\n\r\n\r\r\ndata:  d"
)
"""Every line end, mark, character length and field in a few bytes."""


def _body(recording: Recording) -> bytes:
    return b"".join(read.data for read in recording.reads)


def _parsed(reads: Iterable[tuple[bytes, float]]) -> tuple[list[Event], Event | None]:
    parser = EventParser()
    events = [event for data, at in reads for event in parser.feed(data, at)]
    return events, parser.end()


def _cut(recording: Recording, places: Iterable[int]) -> Recording:
    """The recording with further cuts at these places of its body; a piece keeps the moment of its read."""
    reads, start = [], 0
    cuts = sorted(places)
    for read in recording.reads:
        inside = [place - start for place in cuts if start < place < start + len(read.data)]
        edges = [0, *inside, len(read.data)]
        reads += [Read(read.at, read.data[left:right]) for left, right in itertools.pairwise(edges)]
        start += len(read.data)
    return replace(recording, reads=tuple(reads))


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_cut_at_any_position_leaves_the_events_as_they_are(name: str) -> None:
    """Every single cut of every case and capture, exhaustively."""
    body = _body(RECORDINGS[name])
    whole = _parsed([(body, 0.0)])
    for place in range(len(body) + 1):
        assert _parsed([(body[:place], 0.0), (body[place:], 0.0)]) == whole, f"cut at {place}"


def test_any_two_cuts_of_a_hard_body_leave_the_events_as_they_are() -> None:
    """All pairs of cuts, among them inside CR LF, inside the byte order mark and inside characters."""
    whole = _parsed([(HARD, 0.0)])
    assert [event.data for event in whole[0]] == ["你\n🙂", "a", "", "b", "c"]
    assert whole[1] == Event("message", " d", 0.0)
    for first, second in itertools.combinations_with_replacement(range(len(HARD) + 1), 2):
        pieces = (HARD[:first], HARD[first:second], HARD[second:])
        assert _parsed((piece, 0.0) for piece in pieces) == whole, f"cut at {first} and {second}"


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_byte_by_byte_the_whole_timeline_stays_the_same(name: str) -> None:
    """Token events, moments, counts, flags, outcome, message: equal in every field."""
    recording = RECORDINGS[name]
    assert decode(_cut(recording, range(len(_body(recording))))) == decode(recording)


@given(name=st.sampled_from(sorted(RECORDINGS)), data=st.data())
@settings(max_examples=200, deadline=None)
def test_random_cuts_leave_the_whole_timeline_the_same(name: str, data: st.DataObject) -> None:
    """Several cuts at once, anywhere."""
    recording = RECORDINGS[name]
    places = data.draw(st.lists(st.integers(0, len(_body(recording))), max_size=12))
    assert decode(_cut(recording, places)) == decode(recording)


@given(name=st.sampled_from(sorted(RECORDINGS)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_each_event_has_the_moment_of_the_read_that_completed_it(name: str, data: st.DataObject) -> None:
    """Read k comes at second k; an event's moment is the number of the read that holds its last byte."""
    body = _body(RECORDINGS[name])
    places = sorted(set(data.draw(st.lists(st.integers(1, max(1, len(body) - 1)), max_size=12))))
    edges = [0, *places, len(body)]
    pieces = [(body[left:right], float(number)) for number, (left, right) in enumerate(itertools.pairwise(edges))]
    ends = [event.at for event in _parsed((body[place : place + 1], float(place)) for place in range(len(body)))[0]]
    events = _parsed(pieces)[0]
    assert [event.at for event in events] == [float(bisect.bisect_right(places, end)) for end in ends]


@given(name=st.sampled_from(sorted(CAPTURES)), data=st.data())
@settings(max_examples=100, deadline=None)
def test_cuts_of_the_sockets_own_bytes_leave_the_timeline_the_same(name: str, data: st.DataObject) -> None:
    """Also inside the response head, a chunk size, or the line end after a chunk."""
    capture = CAPTURES[name]
    places = data.draw(st.lists(st.integers(0, len(capture.wire)), max_size=12))
    moments, pieces, start = [], [], 0
    for at, piece in zip(capture.moments, capture.pieces, strict=True):
        inside = sorted(place - start for place in places if start < place < start + len(piece))
        for left, right in itertools.pairwise([0, *inside, len(piece)]):
            moments.append(at)
            pieces.append(piece[left:right])
        start += len(piece)
    answer = unframe(moments, pieces)
    assert decode(replace(capture.recording(), reads=answer.reads)) == decode(capture.recording())


def test_the_comparison_sees_a_parser_that_forgets_at_a_cut() -> None:
    """Shown failing: parsing each read on its own loses the event that the cut goes through."""
    body = _body(RECORDINGS["B001"])
    whole = _parsed([(body, 0.0)])
    forgetful = [event for piece in (body[:100], body[100:]) for event in EventParser().feed(piece, 0.0)]
    assert forgetful != whole[0]
