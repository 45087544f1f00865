"""Where a response ends, and what was in it: the same for every way its bytes can be cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasegate.load.answer import unframe
from phasegate.load.framing import ResponseEnd, UnreadableResponseError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
BODY = b"data: 10\r\n\r\ndata: end\n\n0\r\n\r\nmore"


def chunked(*parts: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + last


RESPONSES = {
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY[:13], BODY[13:]),
    "chunk extensions and trailers": HEAD
    + b"transfer-encoding: gzip, chunked\r\n\r\n"
    + b"%X;name=value\r\n%s\r\n" % (len(BODY), BODY)
    + b"0;last\r\nserver-timing: total\r\nx-two: 2\r\n\r\n",
    "content-length": HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY,
    "after interim answers": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    + HEAD
    + b"content-length: %d\r\n\r\n" % len(BODY)
    + BODY,
}


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % len(data) for place in places)})
    return [data[start:stop] for start, stop in pairwise(edges)]


@pytest.mark.parametrize("name", RESPONSES)
@given(places=st.lists(st.integers(0, 400), max_size=12))
def test_any_cut_of_a_response_ends_at_its_last_byte_and_holds_the_same_body(name: str, places: list[int]) -> None:
    """The end is seen with the last read, never before, and the body comes out whole."""
    pieces = cut(RESPONSES[name], places)
    end = ResponseEnd()
    assert [end.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    moments = [float(place) for place in range(len(pieces))]
    answer = unframe(moments, pieces)
    assert answer.status == 200
    assert dict(answer.headers)["content-type"] == "text/event-stream"
    assert b"".join(read.data for read in answer.reads) == BODY
    assert all(read.data in b"".join(pieces) or b"\r\n" in pieces[int(read.at)] for read in answer.reads)


@pytest.mark.parametrize("name", RESPONSES)
def test_every_single_byte_cut_keeps_the_moment_of_each_body_byte(name: str) -> None:
    """Fed byte by byte, each body byte has the moment of the one read it came in, in order."""
    pieces = [RESPONSES[name][place : place + 1] for place in range(len(RESPONSES[name]))]
    answer = unframe([float(place) for place in range(len(pieces))], pieces)
    assert b"".join(read.data for read in answer.reads) == BODY
    assert all(pieces[int(read.at)] == read.data for read in answer.reads)
    moments = [read.at for read in answer.reads]
    assert moments == sorted(set(moments))


def test_the_end_mark_inside_a_chunk_is_not_the_end() -> None:
    """A reader that takes every read ending in 0 CRLF CRLF for the end stops too early here; this one does not."""
    first = HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % len(BODY) + BODY[: BODY.index(b"more")]
    assert first.endswith(b"0\r\n\r\n")
    end = ResponseEnd()
    assert not end.feed(first)
    assert not end.feed(b"more")
    assert end.feed(b"\r\n0\r\n\r\n")


def test_a_body_without_a_stated_end_is_over_only_when_the_connection_is() -> None:
    """Without length or chunks, nothing in the bytes ends the body."""
    end = ResponseEnd()
    assert not end.feed(HEAD + b"\r\n" + BODY)
    assert not end.feed(b"0\r\n\r\n")
    assert end.until_close


@pytest.mark.parametrize("status", [204, 304])
def test_statuses_without_a_body_end_with_their_head(status: int) -> None:
    """204 and 304 have no body, whatever their fields say."""
    assert ResponseEnd().feed(b"HTTP/1.1 %d X\r\ncontent-length: 5\r\n\r\n" % status)


@pytest.mark.parametrize(
    "bad",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 70000,
    ],
)
def test_bytes_that_are_no_response_are_named_as_such(bad: bytes) -> None:
    """Noise ends in an error with the noise in it, not in waiting."""
    with pytest.raises(UnreadableResponseError):
        ResponseEnd().feed(bad)


def test_an_answer_cut_off_keeps_what_came_before() -> None:
    """The reads before a broken end are all there."""
    data = HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % 100 + b"data: partial"
    answer = unframe([1.0], [data])
    assert [read.data for read in answer.reads] == [b"data: partial"]
    assert unframe([1.0], [b"HTTP/1.1 200 OK\r\nx"]).status is None
    assert unframe([], []).status is None
