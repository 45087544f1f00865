"""The parser of server-sent events against the specification's own rules."""

from __future__ import annotations

import pytest

from phasegate.wire.sse import Event, EventParser


def _data(*reads: bytes) -> list[str]:
    parser = EventParser()
    return [event.data for at, read in enumerate(reads) for event in parser.feed(read, float(at))]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_specification_ends_a_line(end: bytes) -> None:
    """LF, CR and CRLF end lines, and two of them end an event."""
    assert _data(b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end) == ["a\nb", "c"]


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"data\n\ndata\ndata\n\ndata:", ["", "\n"]),
        (b"data:test\n\ndata: test\n\n", ["test", "test"]),
        (b"data:  two spaces\n\n", [" two spaces"]),
        (b": a comment\n\ndata: x\n\n", ["x"]),
        (b"retry: 3000\n\nid: 5\n\ndata: x\n\n", ["x"]),
        (b"event: ping\n\ndata: x\n\n", ["x"]),
        (b"datax: no\n\ndata: x\n\n", ["x"]),
        (b"\n\n\ndata: x\n\n\n", ["x"]),
        (b"\xef\xbb\xbfdata: x\n\n", ["x"]),
        (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", ["x"]),
        (b"data: x\x0bx\x0cx\xc2\x85x\xe2\x80\xa8x\n\n", ["x\x0bx\x0cx\x85x\u2028x"]),
        (b"data: \xff\xfe\n\n", ["\ufffd\ufffd"]),
        (b"data: cut", []),
        (b"", []),
    ],
)
def test_a_body_gives_these_events(body: bytes, events: list[str]) -> None:
    """Fields, comments, marks and odd characters are read as the specification says."""
    assert _data(body) == events


def test_an_event_has_its_type_and_the_next_one_has_its_own() -> None:
    """``event:`` names one event only."""
    events = EventParser().feed(b"event: error\ndata: x\n\ndata: y\n\nevent: e\n\ndata: z\n\n", 1.0)
    assert events == [Event("error", "x", 1.0), Event("message", "y", 1.0), Event("message", "z", 1.0)]


def test_an_event_has_the_moment_of_the_read_that_brought_its_blank_line() -> None:
    """Its first byte came at 1, its text was complete at 2, its blank line came at 3."""
    parser = EventParser()
    assert parser.feed(b"data: a", 1.0) == []
    assert parser.feed(b"b\n", 2.0) == []
    assert parser.feed(b"\ndata:", 3.0) == [Event("message", "ab", 3.0)]


def test_a_line_feed_after_a_cut_line_end_is_not_a_second_line() -> None:
    """CR | LF is one line end: the event is not over yet."""
    parser = EventParser()
    assert parser.feed(b"data: a\r", 1.0) == []
    assert parser.feed(b"\n", 2.0) == []
    assert parser.feed(b"data: b\r\n\r", 3.0) == [Event("message", "a\nb", 3.0)]
    assert parser.feed(b"\ndata: c\r\n\r\n", 4.0) == [Event("message", "c", 4.0)]


def test_an_empty_read_changes_nothing() -> None:
    """Also between CR and LF."""
    assert _data(b"data: a\r", b"", b"\ndata: b\n", b"", b"\n") == ["a\nb"]


def test_a_character_may_be_cut_anywhere() -> None:
    """Four bytes in four reads are one character."""
    assert _data(b"data: \xf0", b"\x9f", b"\x99", b"\x82\n\n") == ["\U0001f642"]


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (b"data: [DONE]", "[DONE]"),
        (b"data: [DONE]\n", "[DONE]"),
        (b"data: a\ndata: b", "a\nb"),
        (b"\xef\xbb\xbfdata: x", "x"),
        (b"data: done\n\n", None),
        (b": comment", None),
        (b"event: error\n", None),
        (b"", None),
    ],
)
def test_the_end_of_the_body_gives_what_waits_for_its_blank_line(body: bytes, last: str | None) -> None:
    """A last event without a blank line is kept, with the moment its last byte came."""
    parser = EventParser()
    parser.feed(body, 5.0)
    event = parser.end()
    assert event == (None if last is None else Event("message", last, 5.0))
    assert parser.end() is None


def test_an_event_cannot_be_changed() -> None:
    """Events are values."""
    with pytest.raises(AttributeError):
        Event("message", "x", 0.0).data = "y"  # type: ignore[misc]
