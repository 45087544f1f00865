"""How a request ended, the words for it, and the flags that go with an answer."""

from __future__ import annotations

import json

import pytest

from phasegate.core.timeline import Ending, Expected
from phasegate.wire.disproof import LARGEST_STEP
from phasegate.wire.messages import LONGEST, clean
from tests.wire.streams import DONE, STOP, chat, event, line_of, said, usage

OK = (said("a"), said("b"), STOP, usage(2), DONE)


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (Ending.INCOMPLETE, "connection_lost"),
        (Ending.IDLE_TIMEOUT, "idle_timeout"),
        (Ending.TOTAL_TIMEOUT, "total_timeout"),
        (Ending.CONNECT_FAILED, "connect_failed"),
        (Ending.CANCELLED, "cancelled"),
        (Ending.PROTOCOL, "protocol"),
        (Ending.EOF, "truncated"),
    ],
)
def test_an_ending_before_the_answer_was_over_is_its_own_kind(ending: Ending, kind: str) -> None:
    """With the transport's words where it has some."""
    line = line_of(said("a"), ending=ending, detail="peer said\nno")
    assert (line.status, line.error_kind, line.sample_valid) == ("error", kind, False)
    assert line.error_message
    if ending is not Ending.EOF:
        assert line.error_message == "peer said no"
        assert line_of(said("a"), ending=ending).error_message


@pytest.mark.parametrize("ending", list(Ending))
def test_an_answer_that_was_over_stays_over(ending: Ending) -> None:
    """After [DONE] nothing that happens to the connection matters."""
    line = line_of(*OK, ending=ending)
    assert (line.status, line.error_kind, line.error_message) == ("ok", None, None)
    assert line.stream_end == 5.0


def test_a_finish_reason_does_not_save_a_connection_that_was_lost_before_done() -> None:
    """Usage may have been on its way; only the end of the body or [DONE] ends the answer."""
    for ending, kind in ((Ending.INCOMPLETE, "connection_lost"), (Ending.IDLE_TIMEOUT, "idle_timeout")):
        assert line_of(said("a"), STOP, ending=ending).error_kind == kind


def test_tokens_that_nobody_saw_make_an_empty_answer_without_remarks_on_chunks() -> None:
    """Four counted, none shown: no chunk held several."""
    line = line_of(STOP, usage(4), DONE)
    assert (line.status, line.output_tokens, line.flags, line.sample_valid) == ("empty", 4, (), False)


def test_no_response_at_all_is_told_from_a_short_one() -> None:
    """Refused; closed without a head; nothing but an empty body."""
    refused = line_of(status=None, content_type=None, ending=Ending.CONNECT_FAILED, detail="Connection refused")
    assert (refused.error_kind, refused.error_message, refused.first_byte) == (
        "connect_failed",
        "Connection refused",
        None,
    )
    assert line_of(status=None, content_type=None).error_kind == "protocol"
    assert line_of(status=200).error_kind == "truncated"


@pytest.mark.parametrize("status", [301, 401, 404, 429, 503])
def test_a_status_other_than_success_is_the_kind_whatever_the_body_says(status: int) -> None:
    """Also when the body is a stream, or broke off."""
    for ending in (Ending.EOF, Ending.INCOMPLETE, Ending.IDLE_TIMEOUT):
        line = line_of(*OK, status=status, ending=ending)
        assert (line.status, line.error_kind, line.sample_valid) == ("error", f"http_{status}", False)
    assert line_of(status=status).error_message == f"HTTP {status} with an empty body"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error":{"message":"no","type":"t","param":"p","code":"c"}}', "no (param: p, code: c, type: t)"),
        ('{"error":{"message":"p is bad","param":"p","code":null}}', "p is bad"),
        ('{"error":"no"}', "no"),
        ('{"object":"error","message":"no","code":400}', "no (code: 400)"),
        ('{"detail":"Not Found"}', "Not Found"),
        ('{"detail":[{"loc":["body","n"],"msg":"bad"},{"msg":"worse"}]}', "body.n: bad; worse"),
        ('{"error":{"code":"c"}}', "code: c"),
        ('data: {"error":{"message":"no"}}', "no"),
        ("Internal Server Error\n", "Internal Server Error"),
        ("<html>\n<b>502</b>", "<html> <b>502</b>"),
        ('{"weird": [1]}', '{"weird": [1]}'),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_an_error_page_gives_the_servers_own_words(body: str, message: str) -> None:
    """In OpenAI's, vLLM's and FastAPI's shapes, as an event, or plain."""
    assert line_of(body, status=400).error_message == message


@pytest.mark.parametrize(
    "failure",
    [
        event({"error": {"message": "boom"}}),
        event({"error": "boom"}),
        event({"error": {"message": "boom"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
        'event: error\ndata: {"message": "boom"}\n\n',
        "event: error\ndata: boom\n\n",
        event({"type": "error", "message": "boom"}),
        event({"object": "error", "message": "boom", "code": 500}),
        event({"message": "boom"}),
    ],
)
def test_an_error_inside_the_stream_fails_the_request(failure: str) -> None:
    """In every shape, although finish, usage and [DONE] follow."""
    line = line_of(said("a"), failure, STOP, usage(1), DONE)
    assert (line.status, line.error_kind, line.sample_valid, line.text) == ("error", "stream_error", False, "a")
    assert "boom" in (line.error_message or "")


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_finish_reason_that_gives_up_fails_the_request(reason: str) -> None:
    """The engine's word for it is in the message."""
    line = line_of(said("a"), chat({}, finish=reason), usage(1), DONE)
    assert line.error_kind == "stream_error"
    assert reason in (line.error_message or "")


def test_an_empty_error_field_is_no_error() -> None:
    """Some servers send ``error: null`` on every chunk."""
    assert line_of(said("a", error=None), said("b", error={}), STOP, usage(2), DONE).status == "ok"


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        ('{"choices":[{"message":{"content":"all"}}]}', "application/json", "not_streaming"),
        (' \n{"choices":[]}\n', None, "not_streaming"),
        ('{"choices":[]}', "text/event-stream", "not_streaming"),
        ('{"error":{"message":"no"}}', "application/json", "stream_error"),
        ('{"a":1}\n{"a":2}', "application/x-ndjson", "protocol"),
        ("<html>log in</html>", "text/html; charset=utf-8", "protocol"),
        ("<script>\ndata: x\n\n</script>", "text/html", "protocol"),
        ("upstream connect error", "text/plain", "protocol"),
        (": still there\n\n", "text/event-stream", "truncated"),
        (": still there\n\n", None, "truncated"),
        (" \n", None, "truncated"),
    ],
)
def test_a_body_that_is_no_stream_is_an_error_and_never_a_time(body: str, content_type: str | None, kind: str) -> None:
    """One JSON answer, JSON lines, a portal's page, plain words, comments only."""
    line = line_of(body, content_type=content_type)
    assert (line.status, line.error_kind, line.tokens) == ("error", kind, ())
    assert line.error_message


def test_a_stream_under_a_wrong_content_type_is_still_a_stream() -> None:
    """What was sent counts, not what it was called."""
    assert line_of(*OK, content_type="application/json").status == "ok"
    assert line_of(*OK, content_type=None).status == "ok"


def test_done_alone_is_no_success_but_usage_and_done_are() -> None:
    """Without a finish reason, the usage report shows that the server closed the answer's books."""
    assert line_of(said("a"), said("b"), DONE).error_kind == "truncated"
    line = line_of(said("a"), said("b"), usage(2), DONE)
    assert (line.status, line.flags) == ("ok", ("no_finish_reason",))


def test_what_follows_done_is_not_read() -> None:
    """The answer is over."""
    line = line_of(*OK, said("late"))
    assert (line.text, line.stream_end) == ("ab", 5.0)


def test_a_last_event_without_its_blank_line_is_read_and_flagged() -> None:
    """Usage, then [DONE] with one line feed; or usage JSON and nothing more."""
    done = line_of(said("a"), STOP, usage(1), "data: [DONE]\n")
    assert (done.status, done.flags, done.stream_end) == ("ok", ("unterminated_event",), 4.0)
    counts = line_of(said("a"), STOP, usage(1).rstrip())
    assert (counts.output_tokens, counts.flags) == (1, ("no_done", "unterminated_event"))


def test_a_last_event_is_not_completed_by_a_lost_connection() -> None:
    """Only the end of the body ends it; a cut payload is unreadable and says so."""
    assert line_of(said("a"), said("b").rstrip(), ending=Ending.INCOMPLETE).text == "a"
    cut = line_of(said("a"), STOP, said("b")[:20])
    assert (cut.text, cut.malformed_events) == ("a", 1)


@pytest.mark.parametrize(
    "noise", ["data: : keepalive\n\n", "data: [1]\n\n", "data: 5\n\n", "data: null\n\n", "data: {x\n\n"]
)
def test_an_event_that_is_not_an_object_is_counted_and_left_out(noise: str) -> None:
    """It never becomes a first token."""
    line = line_of(noise, said("a"), said("b"), STOP, usage(2), DONE)
    assert (line.malformed_events, line.flags, line.tokens[0].at) == (1, ("malformed_event",), 2.0)


def test_an_event_without_data_is_a_sign_of_life_and_not_malformed() -> None:
    """``data:`` with nothing after it."""
    assert line_of("data:\n\n", "data: \n\n", *OK).flags == ()


def test_an_answer_in_one_read_is_buffered_and_unfit() -> None:
    """Two tokens at one moment, or one event with more tokens than a step can yield."""
    lump = line_of("".join(OK))
    assert (lump.flags, lump.sample_valid) == (("buffered",), False)
    whole = line_of(said("a long answer"), STOP, usage(LARGEST_STEP + 1), DONE)
    assert (whole.flags, whole.sample_valid) == (("buffered", "multi_token_chunks"), False)
    step = line_of(said("a b c"), STOP, usage(3), DONE)
    assert (step.flags, step.sample_valid) == (("multi_token_chunks",), True)


def test_two_choices_in_one_read_are_no_burst() -> None:
    """Each choice has one event there."""
    pair = [said(text, index=0) + said(text, index=1) for text in "ab"]
    stops = chat({}, finish="stop", index=0) + chat({}, finish="stop", index=1)
    assert line_of(*pair, stops, usage(4), DONE).flags == ("n_choices",)


@pytest.mark.parametrize(("cold", "tolerated", "valid"), [(True, 0, False), (True, 6, True), (False, 0, True)])
def test_cached_tokens_spoil_a_cold_prompt_beyond_what_is_tolerated(cold: bool, tolerated: int, valid: bool) -> None:
    """The chat template may be shared; a request that wants the cache may have it."""
    cached = usage(2, prompt_tokens_details={"cached_tokens": 6})
    wanted = Expected(cold_prompt=cold, tolerated_cached_tokens=tolerated)
    line = line_of(said("a"), said("b"), STOP, cached, DONE, expected=wanted)
    assert line.sample_valid is valid
    assert ("cached_prompt" in line.flags) is (tolerated == 0)


def test_a_prompt_of_another_length_than_promised_is_flagged_and_unfit() -> None:
    """One token off is off; no report of it is not."""
    assert line_of(*OK, expected=Expected(prompt_tokens=10)).flags == ()
    off = line_of(*OK, expected=Expected(prompt_tokens=11))
    assert (off.flags, off.sample_valid) == (("prompt_length_mismatch",), False)
    silent = line_of(said("a"), STOP, usage(1, prompt=None), DONE, expected=Expected(prompt_tokens=11))
    assert silent.flags == ()


@pytest.mark.parametrize(
    ("wanted", "got", "off"), [(100, 96, False), (100, 94, True), (2000, 1950, False), (2000, 1949, True)]
)
def test_a_forced_length_is_missed_by_more_than_five_percent_or_fifty_tokens(wanted: int, got: int, off: bool) -> None:
    """The smaller of the two counts."""
    line = line_of(said("a"), said("b"), STOP, usage(got), DONE, expected=Expected(output_tokens=wanted))
    assert ("osl_mismatch" in line.flags) is off


SECRET = "Zx9yQw8vLm7nKp6tRs5u"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"bad header 'bearer {SECRET}'",
        f"Incorrect API key provided: {SECRET}.",
        f"Incorrect API key provided: sk-proj-{SECRET}. You can find yours",
        f'{{"api_key": "{SECRET}"}}',
        f"GET /v1?api-key={SECRET}&x=1",
        f"hf_{SECRET} is not valid",
        f"http://user:{SECRET}@proxy:3128 refused",
        f"Basic {SECRET}",
        f"token eyJhbGciOiJ9.eyJ{SECRET}.sig",
    ],
)
def test_what_looks_like_a_key_never_stays_in_a_message(text: str) -> None:
    """In a header, in a sentence, in JSON, in an address."""
    assert SECRET not in clean(text)
    assert SECRET not in (line_of(text, status=401).error_message or "")
    assert SECRET not in (line_of(event({"error": {"message": text}})).error_message or "")
    assert SECRET not in (line_of(said("a"), ending=Ending.INCOMPLETE, detail=text).error_message or "")
    assert SECRET not in (line_of(text, content_type="text/plain").error_message or "")
    assert SECRET not in (
        line_of(json.dumps({"detail": [{"loc": ["body"], "msg": text}]}), status=422).error_message or ""
    )


def test_a_message_is_one_short_line() -> None:
    """Line ends, tabs and control characters go; length is cut; ordinary words stay."""
    assert clean("a\r\n\tb\x00c\x1b[31m") == "a b\ufffdc\ufffd[31m"
    assert len(clean("x y " * 10000)) == LONGEST
    harmless = "max_tokens is not supported; the key 'n' is unknown; api keys: ask; sk-1; see https://host:80/a@b"
    assert clean(harmless) == harmless
