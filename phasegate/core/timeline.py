"""What one request left behind, as it was seen (`Recording`) and as it is understood (`Timeline`).

A `Recording` is made while the request runs and holds moments and raw bytes, nothing else: it can be
stored, replayed and decoded again. A `Timeline` is made from it afterwards by `wire.openai_stream`.
All moments are seconds on one monotonic clock; only differences between them mean anything.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Ending(str, enum.Enum):
    """How the transport saw a response end. What the *content* says is the decoder's business."""

    EOF = "eof"
    """The body ended where HTTP says it ends."""
    INCOMPLETE = "incomplete"
    """The peer closed the connection inside the body or before the response."""
    RESET = "reset"
    """The peer reset it there."""
    IDLE_TIMEOUT = "idle_timeout"
    """No byte came for longer than the idle deadline."""
    TOTAL_TIMEOUT = "total_timeout"
    """The request outlived its total deadline."""
    CONNECT_FAILED = "connect_failed"
    """No connection could be made: refused, unresolvable, TLS failure, connect deadline."""
    CANCELLED = "cancelled"
    """The client gave the request up, for example on Ctrl-C."""
    PROTOCOL = "protocol"
    """The answer was not HTTP that a client can read."""
    WORKER_LOST = "worker_lost"
    """The client's worker died before it had reported the request; how it went is not known."""


class Channel(str, enum.Enum):
    """Where in the answer a token event belongs."""

    CONTENT = "content"
    REASONING = "reasoning"
    TOOL = "tool"
    UNNAMED = "unnamed"
    """Text in a field that is not understood."""


@dataclass(frozen=True, slots=True)
class Read:
    """One network read of the response body: when it came and what it held, transfer coding removed."""

    at: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """What the sender knew about the request; the decoder checks the answer against it.

    Attributes:
        endpoint: ``"chat"``, ``"completions"``, ``"messages"`` (Anthropic's own) or ``"ollama"`` (Ollama's own);
            decides how the answer is read.
        max_tokens: the output limit that was sent, or None where none was.
        output_tokens: the exact number of output tokens that was forced, or None where nothing was forced.
        prompt_tokens: the exact prompt length that the workload promises, or None where unknown.
        cold_prompt: True when no prefix cache may help, so that cached tokens make the sample unusable.
        tolerated_cached_tokens: cached tokens that a cold prompt may have all the same: those of the chat
            template, which every prompt begins with.
        choices: the ``n`` of the request.
    """

    endpoint: str = "chat"
    max_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cold_prompt: bool = True
    tolerated_cached_tokens: int = 0
    choices: int = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """One request as the wire saw it.

    Attributes:
        request_id: unique within a run; tells requests apart in messages.
        due: when the schedule wanted the request to start.
        sent: when the request's headers were handed to the socket; None when that never happened.
        connect_time: seconds spent setting up the connection before ``sent`` (0.0 when one was reused);
            None when no connection was made.
        http_status: status code, or None when no response head came.
        headers: response headers in order, names in lower case.
        headers_at: when the response head was complete, or None.
        reads: the body, in order of arrival.
        ending: how the transport saw it end.
        ended_at: when it ended.
        detail: the transport's own words about a failure, free of secrets; empty when there was none.
        expected: what the sender knew.
    """

    request_id: str
    due: float
    sent: float | None
    connect_time: float | None
    http_status: int | None
    headers: tuple[tuple[str, str], ...]
    headers_at: float | None
    reads: tuple[Read, ...]
    ending: Ending
    ended_at: float
    detail: str = ""
    expected: Expected = field(default_factory=Expected)

    def header(self, name: str) -> str | None:
        """The first header of that name (any case), or None."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key == wanted), None)


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One event that carried output: text, reasoning text, or a tool call's name or arguments.

    Attributes:
        at: the moment the event was complete (its blank line arrived).
        channel: which part of the answer it belongs to.
        text: what it carried, never empty.
        choice: index of the choice it belongs to.
        tokens: how many tokens it holds where the server proved it (running usage or logprobs), else None.
    """

    at: float
    channel: Channel
    text: str
    choice: int = 0
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """One request, understood.

    Attributes:
        status: ``"ok"``, ``"error"`` or ``"empty"`` (an answer without a single token).
        error_kind: for errors one of ``http_<status>``, ``stream_error``, ``not_streaming``, ``truncated``,
            ``wrong_dialect``, ``connection_lost``, ``connection_reset``, ``idle_timeout``, ``total_timeout``,
            ``connect_failed``, ``protocol``, ``cancelled``, ``worker_lost``; else None.
        error_message: the server's or transport's own words, shortened and free of secrets; of an empty answer where
            its text may have been, or None.
        due, sent: as in the recording.
        connect_time: as in the recording.
        tokens: token events in order of arrival.
        output_tokens: the server's count over every channel and choice; None without a proven count.
        token_source: ``"usage"``, ``"logprobs"`` or None. Counts of different sources are never compared.
        output_tokens_estimate: number of token events, given only when the count is unproven; a lower bound.
        prompt_tokens, cached_tokens, reasoning_tokens: as the server reported them; None where it did not
            (which is not 0).
        finish_reason: of the first choice.
        choices: number of choices seen.
        flags: sorted, from the vocabulary in `wire.openai_stream.FLAGS`.
        malformed_events: events whose payload could not be read.
        first_byte: moment of the first body byte, or None.
        stream_end: moment the answer was over (``[DONE]``, else the end of the body).
        server_timings: the server's own timings where the stream carries them, in the server's words.
        model: the model name the server answered with.
        sample_valid: whether the request may enter a latency sample.
        expected: what the sender knew.
        unnamed_fields: fields that are not understood and held text, such as ``delta.scratch``; see the flag
            ``unnamed_text``.
        count_problem: what the server said in place of an output token count, where that is none, free of secrets;
            None where it said nothing.
    """

    request_id: str
    status: str
    error_kind: str | None
    error_message: str | None
    due: float
    sent: float | None
    connect_time: float | None
    tokens: tuple[TokenEvent, ...]
    output_tokens: int | None
    token_source: str | None
    output_tokens_estimate: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    reasoning_tokens: int | None
    finish_reason: str | None
    choices: int
    flags: tuple[str, ...]
    malformed_events: int
    first_byte: float | None
    stream_end: float
    server_timings: Mapping[str, Any] | None
    model: str | None
    sample_valid: bool
    expected: Expected
    count_problem: str | None = None
    unnamed_fields: tuple[str, ...] = ()

    def text_of(self, channel: Channel, choice: int | None = None) -> str:
        """Everything one channel carried, joined; of one choice, or of all when ``choice`` is None."""
        return "".join(
            event.text
            for event in self.tokens
            if event.channel is channel and (choice is None or event.choice == choice)
        )

    @property
    def text(self) -> str:
        """The answer itself."""
        return self.text_of(Channel.CONTENT)

    @property
    def reasoning_text(self) -> str:
        """What the model thought aloud."""
        return self.text_of(Channel.REASONING)

    @property
    def unnamed_text(self) -> str:
        """What came in fields that are not understood."""
        return self.text_of(Channel.UNNAMED)

    @property
    def tool_text(self) -> str:
        """Names and arguments of tool calls, joined as they came."""
        return self.text_of(Channel.TOOL)
