"""How a request ended: answered, empty, or failed, and then of what kind.

The order of the questions is the rule: what the server says of itself comes before what the transport saw,
and an answer that was complete stays complete, whatever happened to the connection afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from phasegate.core.timeline import Ending, Recording
from phasegate.wire.foreign import dialect_of
from phasegate.wire.messages import WORDLESS, clean, of_body, of_payload, parse
from phasegate.wire.streamed import StreamedAnswer

ERROR_KINDS: dict[str, str] = {
    "http_<status>": "The server answered with that HTTP status instead of 200.",
    "stream_error": "The server reported an error inside an answer that began with HTTP 200.",
    "not_streaming": "The server answered with one JSON body though a stream was asked for.",
    "truncated": "The body ended properly, but the answer in it did not: no finish_reason, or no usage before [DONE].",
    "connection_lost": "The peer closed the connection inside the answer, or before it.",
    "connection_reset": "The peer reset the connection inside the answer, or before it.",
    "idle_timeout": "No byte came for longer than the idle deadline.",
    "total_timeout": "The request outlived its total deadline.",
    "connect_failed": "No connection could be made.",
    "cancelled": "The client gave the request up.",
    "wrong_dialect": "The server answered in the words of another API than was asked.",
    "protocol": "The answer was not HTTP, or not a stream of server-sent events.",
    "worker_lost": "A worker of the client died before it had reported the request.",
}
"""Every kind of failure, and what it means."""

_KIND_OF_ENDING = {
    Ending.INCOMPLETE: "connection_lost",
    Ending.RESET: "connection_reset",
    Ending.IDLE_TIMEOUT: "idle_timeout",
    Ending.TOTAL_TIMEOUT: "total_timeout",
    Ending.CONNECT_FAILED: "connect_failed",
    Ending.CANCELLED: "cancelled",
    Ending.PROTOCOL: "protocol",
    Ending.WORKER_LOST: "worker_lost",
}

_FIELDS_OF_EVENTS = (b":", b"data", b"event", b"id", b"retry")


class Outcome(NamedTuple):
    """``status`` as in `Timeline`; ``kind`` is None unless it is ``"error"``, ``message`` where there is no word."""

    status: str
    kind: str | None = None
    message: str | None = None


def outcome_of(recording: Recording, answer: StreamedAnswer) -> Outcome:
    """Whether the request was answered, and if not, why not."""
    status = recording.http_status
    if status is not None and not 200 <= status < 300:
        words = _encoded(recording) or of_body(b"".join(read.data for read in recording.reads))
        return _error(f"http_{status}", words or f"HTTP {status} with an empty body")
    if answer.error is not None:
        return _error("stream_error", answer.error)
    if answer.foreign is not None and not answer.tokens:
        return _error("wrong_dialect", _in_words_of(answer.foreign))
    if answer.complete and (answer.done_at is not None or recording.ending is Ending.EOF):
        return Outcome("ok") if answer.tokens else Outcome("empty", None, _where_the_text_went(answer))
    if recording.ending is not Ending.EOF:
        kind = _KIND_OF_ENDING[recording.ending]
        return _error(kind, clean(recording.detail) or ERROR_KINDS[kind])
    encoded = _encoded(recording)
    if encoded is not None and not answer.tokens:
        return _error("protocol", encoded)
    if answer.events == 0 or "html" in (recording.header("content-type") or ""):
        return _without_events(recording)
    return _error("truncated", _what_is_missing(answer))


def _error(kind: str, message: str) -> Outcome:
    return Outcome("error", kind, message)


def _encoded(recording: Recording) -> str | None:
    """That the body is compressed, where it is, so that nothing of it was read; None where it is not."""
    encoding = clean(recording.header("content-encoding") or "identity").lower()
    if encoding == "identity":
        return None
    return f"the answer is encoded as {encoding}, though it was asked for as it is: does a proxy compress it?"


def _where_the_text_went(answer: StreamedAnswer) -> str | None:
    """What is known of an answer without a token event; None where it was simply empty."""
    counted, reasoned = answer.ledger.completion or 0, answer.ledger.reasoning or 0
    if not counted and not answer.strange:
        return None
    of_reasoning = f" ({reasoned} of them of reasoning)" if 0 < reasoned <= counted else ""
    tokens = f"{counted} token{'s were' if counted != 1 else ' was'} counted{of_reasoning}, but " if counted else ""
    seen = f"; fields seen: {', '.join(answer.strange)}" if answer.strange else ""
    return f"{tokens}no chunk held text in a field that is known{seen}"


def _without_events(recording: Recording) -> Outcome:
    """A body that holds no event: one JSON answer, a page of a proxy, comments only, or nothing."""
    if recording.http_status is None:
        return _error("protocol", "the connection ended before any HTTP response")
    body = b"".join(read.data for read in recording.reads).strip().removeprefix(b"\xef\xbb\xbf")
    content_type = clean(recording.header("content-type") or "no content-type")
    payload = parse(body.decode("utf-8", "replace")) if body[:1] == b"{" else None
    if isinstance(payload, dict):
        if payload.get("error") or payload.get("object") == "error":
            return _error("stream_error", of_payload(payload) or WORDLESS)
        asked = "a stream was asked for, but the server answered with one JSON body"
        return _error("not_streaming", f"{asked} ({content_type}): is streaming off in the server or a proxy?")
    first = parse(body.split(b"\n", 1)[0].decode("utf-8", "replace"))
    dialect = dialect_of(first) if isinstance(first, dict) else None
    if dialect is not None:
        return _error("wrong_dialect", f"lines of JSON of {dialect} came, not server-sent events ({content_type})")
    if not body:
        return _error("truncated", "the body was empty")
    if "event-stream" in content_type or body.startswith(_FIELDS_OF_EVENTS):
        return _error("truncated", "the body ended before the first event was complete")
    start = clean(body[:200].decode("utf-8", "replace"))
    return _error("protocol", f"not a stream of server-sent events but {content_type}: {start}"[:500])


def _in_words_of(dialect: str) -> str:
    return f"the answer is in the words of {dialect}: is this the right address, or the right --perf-endpoint?"


def _what_is_missing(answer: StreamedAnswer) -> str:
    where = "[DONE] came" if answer.done_at is not None else "the body ended"
    unread = f", {answer.malformed} unreadable" if answer.malformed else ""
    return (
        f"{where} without a finish_reason, after {answer.output_events} token events ({answer.events} events{unread})"
    )
