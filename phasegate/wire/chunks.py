"""One streamed answer, put together chunk by chunk: token events, counts, how each choice finished, errors.

Nothing is judged here; `outcome` and `flags` do that. Whatever a payload holds, reading it never raises:
what is not of the expected type is not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from phasegate.timeline import Channel, Ending, Recording, TokenEvent
from phasegate.wire.deltas import pieces, strange_fields
from phasegate.wire.foreign import CHAT, COMPLETIONS, dialect_of
from phasegate.wire.messages import WORDLESS, clean, of_payload
from phasegate.wire.numbers import count, readings, writable
from phasegate.wire.sse import Event, EventParser
from phasegate.wire.usage import Ledger, listed_tokens, reports_in

DONE = "[DONE]"

OWN = frozenset({CHAT, COMPLETIONS})
"""The dialects that are read here."""

VLLM_TIMINGS = "metrics"
"""Where vLLM writes its own times with ``--enable-per-request-metrics``; others may call other things so."""

STRANGE_FIELDS, STRANGE_LENGTH = 4, 60
"""Fields that a message about an answer without text names, and characters of each."""

BROKEN_FINISHES = frozenset({"error", "abort"})
"""Finish reasons with which engines give an answer up."""


class Choice:
    """One of the parallel answers: its output events and its end."""

    __slots__ = ("events", "finish_reason", "first_at", "last_at", "same_read")

    def __init__(self) -> None:
        self.events = 0
        self.same_read = 0
        """Output events that came in the same network read as the one before them."""
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.finish_reason: str | None = None

    def output_at(self, at: float) -> None:
        """One more output event."""
        self.events += 1
        if self.first_at is None:
            self.first_at = at
        elif at == self.last_at:
            self.same_read += 1
        self.last_at = at


class StreamedAnswer:
    """What the events of one response say.

    Attributes:
        tokens: token events in order of arrival.
        choices: by index.
        ledger: token counts.
        unlisted: output events without logprobs.
        events: events read, whatever they held.
        malformed: events whose payload is not a JSON object.
        unterminated: the last event came without its blank line.
        done_at: moment of ``[DONE]``, or None.
        error: the first error's message, or None.
        foreign: the first other dialect that a payload spoke, or None.
        endpoint: the endpoint whose chunks these are, by the first that held output; None without one.
        hidden_reasoning: reasoning took place of which no text was shown, by the stream's own words.
        model, timings: as the server says.
        strange: names of fields that held something in chunks without output; the first few.
    """

    __slots__ = (
        "choices",
        "done_at",
        "endpoint",
        "error",
        "events",
        "foreign",
        "hidden_reasoning",
        "ledger",
        "malformed",
        "model",
        "strange",
        "timings",
        "tokens",
        "unlisted",
        "unterminated",
    )

    content_type = "event-stream"
    """What a content type of such an answer has in it."""

    def __init__(self) -> None:
        self.tokens: list[TokenEvent] = []
        self.choices: dict[int, Choice] = {}
        self.ledger = Ledger()
        self.unlisted = 0
        self.events = 0
        self.malformed = 0
        self.unterminated = False
        self.done_at: float | None = None
        self.error: str | None = None
        self.foreign: str | None = None
        self.endpoint: str | None = None
        self.hidden_reasoning = False
        self.model: str | None = None
        self.timings: dict[str, Any] | None = None
        self.strange: list[str] = []

    @property
    def complete(self) -> bool:
        """Every choice said why it finished; or the stream was closed properly after its usage report.

        ``[DONE]`` alone proves nothing: a server may send it after an answer that another request cut off.
        """
        finishes = [choice.finish_reason for choice in self.choices.values()]
        if finishes and None not in finishes:
            return True
        return self.done_at is not None and self.ledger.completion is not None

    @property
    def output_events(self) -> int:
        """Output events of all choices; an event with text in two channels counts once."""
        return sum(choice.events for choice in self.choices.values())

    def output_tokens(self) -> tuple[int | None, str | None]:
        """The proven count of output tokens and its source, or None twice."""
        ledger = self.ledger
        of_one_choice = len(self.choices) > 1 and ledger.on_choice and ledger.reports > 1
        if ledger.completion is not None and not of_one_choice:
            return ledger.completion, "usage"
        if ledger.listed and not self.unlisted:
            return ledger.listed, "logprobs"
        return None, None

    def take(self, event: Event) -> None:
        """Read one event."""
        self.events += 1
        text = event.data.strip()
        if not text:
            return
        if text == DONE:
            self.done_at = event.at
            return
        try:
            payload = json.loads(text)
        except (ValueError, RecursionError):
            payload = None
        if isinstance(payload, dict):
            self._take_payload(event, payload)
        elif event.type == "error":
            self.fail(clean(event.data))
        else:
            self.malformed += 1

    def _take_payload(self, event: Event, payload: Mapping[str, Any]) -> None:
        if _is_error(event.type, payload):
            self.fail(of_payload(payload))
        if self.model is None and payload.get("model") and isinstance(payload["model"], str):
            self.model = writable(payload["model"])
        found = payload.get("choices")
        choices = [choice for choice in found if isinstance(choice, dict)] if isinstance(found, list) else []
        running = None
        self.ledger.note_no_report(payload.get("usage"))
        for usage in reports_in(payload):
            running = self.ledger.take(usage, on_choice=bool(choices))
        if "timings" in payload:
            self._take_timings(payload["timings"])
        if isinstance(payload.get(VLLM_TIMINGS), dict) and "time_to_first_token_ms" in payload[VLLM_TIMINGS]:
            self._take_timings(payload[VLLM_TIMINGS])
        if not choices and self.foreign is None:
            self.note_foreign(payload, OWN)
        for choice in choices:
            self._take_choice(event.at, choice, running)

    def note_foreign(self, payload: Mapping[str, Any], own: frozenset[str]) -> None:
        """Remember whose dialect a payload speaks that is not one of ``own``."""
        dialect = dialect_of(payload)
        if dialect not in own:
            self.foreign = dialect

    def _take_choice(self, at: float, choice: Mapping[str, Any], running: int | None) -> None:
        index = count(choice.get("index")) or 0
        state = self.state(index)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            state.finish_reason = writable(reason)
            if reason in BROKEN_FINISHES:
                self.fail(f"the server ended the answer with finish_reason {clean(reason)!r}")
        listed = listed_tokens(choice)
        self.ledger.listed += listed
        output = pieces(choice)
        if output:
            if self.endpoint is None:
                self.endpoint = "completions" if "text" in choice and "delta" not in choice else "chat"
            state.output_at(at)
            self.unlisted += not listed
            proven = self.ledger.proven_by(running, listed)
            self.add(at, index, output, proven)
        elif not self.tokens:
            self._note_strange(choice)

    def _note_strange(self, choice: Mapping[str, Any]) -> None:
        """Remember where an answer's text may have been that nobody understood."""
        for name in strange_fields(choice):
            shown = clean(name)[:STRANGE_LENGTH]
            if len(self.strange) < STRANGE_FIELDS and shown not in self.strange:
                self.strange.append(shown)

    def state(self, index: int) -> Choice:
        """The choice of that index, made where it is new."""
        found = self.choices.get(index)
        if found is None:
            found = self.choices[index] = Choice()
        return found

    def add(self, at: float, index: int, output: list[tuple[Channel, str]], proven: int | None) -> None:
        """Token events of one moment; a proven count belongs to one of them only where there is but one."""
        for channel, text in output:
            self.tokens.append(TokenEvent(at, channel, writable(text), index, proven if len(output) == 1 else None))

    def _take_timings(self, timings: object) -> None:
        """The engine's own clock readings; llama.cpp's cached tokens stand where usage tells none."""
        found = readings(timings)
        if found:
            self.timings = dict(found)
            if self.ledger.cached is None:
                self.ledger.cached = count(found.get("cache_n"))

    def fail(self, message: str) -> None:
        """Note an error of the server; the first one stands."""
        if self.error is None:
            self.error = message or WORDLESS


def read_stream(recording: Recording, answer: StreamedAnswer | None = None) -> StreamedAnswer:
    """Everything the recorded body says, up to its end mark; ``answer`` is an empty one of another dialect."""
    if answer is None:
        answer = StreamedAnswer()
    parser = EventParser()
    for read in recording.reads:
        for event in parser.feed(read.data, read.at):
            answer.take(event)
            if answer.done_at is not None:
                return answer
    last = parser.end() if recording.ending is Ending.EOF else None
    if last is not None:
        answer.unterminated = True
        answer.take(last)
    return answer


def _is_error(event_type: str, payload: Mapping[str, Any]) -> bool:
    """An ``error`` key, an event of that type, or an object that calls itself one or is nothing but a message."""
    if payload.get("error") or event_type == "error":
        return True
    if "choices" in payload:
        return False
    if payload.get("object") == "error" or payload.get("type") == "error":
        return True
    return "usage" not in payload and any(isinstance(payload.get(key), str) for key in ("message", "detail"))
