"""The chunks of OpenAI's dialect, chat or completions: what each of them adds to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phasegate.core.timeline import Ending, Recording
from phasegate.wire.deltas import output_of, strange_fields
from phasegate.wire.foreign import CHAT, COMPLETIONS
from phasegate.wire.messages import clean, of_payload
from phasegate.wire.numbers import count, readings, writable
from phasegate.wire.sse import Event, EventParser
from phasegate.wire.streamed import STRANGE_FIELDS, STRANGE_LENGTH, StreamedAnswer, settled
from phasegate.wire.unnamed import METADATA, Found, texts_in
from phasegate.wire.usage import listed_tokens, reports_in

OWN = frozenset({CHAT, COMPLETIONS})
"""The dialects that are read here."""

VLLM_TIMINGS = "metrics"
"""Where vLLM writes its own times with ``--enable-per-request-metrics``; others may call other things so."""

_OF_A_CHUNK = METADATA | {"choices"}

BROKEN_FINISHES = frozenset({"error", "abort"})
"""Finish reasons with which engines give an answer up."""


class ChunkedAnswer(StreamedAnswer):
    """What the chunks of one response say."""

    __slots__ = ()

    def _take_payload(self, event: Event, payload: Mapping[str, Any]) -> None:
        if _is_error(event.type, payload):
            self.fail(of_payload(payload))
        if self.model is None and payload.get("model") and isinstance(payload["model"], str):
            self.model = writable(payload["model"])
        found = payload.get("choices")
        listed = found if isinstance(found, list) else [found]  # one choice may come without its list
        choices = [choice for choice in listed if isinstance(choice, dict)]
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
        beside = list(texts_in(payload, ("choices",))) if payload.keys() - _OF_A_CHUNK else []
        for place, choice in enumerate(choices):
            self._take_choice(event.at, choice, running, () if place else beside)
        if beside and not choices:
            self._take_beside(event.at, payload, beside)

    def _take_beside(self, at: float, payload: Mapping[str, Any], found: Sequence[Found]) -> None:
        """Text of a payload without choices in fields that are not understood: output of a chunk, else remarked."""
        name = payload.get("object")
        named = isinstance(name, str) and name.startswith(("chat.completion", "text_completion"))
        if named or isinstance(payload.get("choices"), list):
            self.put(at, 0, [], found, last="usage" in payload)
        elif self.error is None and self.foreign is None:
            for one in found:
                self.unnamed.outside(one)

    def _take_choice(
        self, at: float, choice: Mapping[str, Any], running: int | None, beside: Sequence[Found] = ()
    ) -> None:
        index = count(choice.get("index")) or 0
        state = self.state(index)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            state.finish_reason = writable(reason)
            if reason in BROKEN_FINISHES:
                self.fail(f"the server ended the answer with finish_reason {clean(reason)!r}")
        listed = listed_tokens(choice)
        self.ledger.listed += listed
        output = output_of(choice)
        for key, written in output.calls:
            self.calls.setdefault((index, key), []).append(written)
        if self.put(at, index, output.pieces, [*output.unnamed, *beside], bool(reason), running, listed):
            if self.endpoint is None:
                self.endpoint = "completions" if "text" in choice and "delta" not in choice else "chat"
        elif not self.tokens:
            self._note_strange(choice)

    def _note_strange(self, choice: Mapping[str, Any]) -> None:
        """Remember where an answer's text may have been that nobody understood."""
        for name in strange_fields(choice):
            shown = clean(name)[:STRANGE_LENGTH]
            if len(self.strange) < STRANGE_FIELDS and shown not in self.strange:
                self.strange.append(shown)

    def _take_timings(self, timings: object) -> None:
        """The engine's own clock readings; llama.cpp's cached tokens stand where usage tells none."""
        found = readings(timings)
        if found:
            self.timings = dict(found)
            if self.ledger.cached is None:
                self.ledger.cached = count(found.get("cache_n"))


def read_stream(recording: Recording, kind: type[StreamedAnswer] = ChunkedAnswer) -> StreamedAnswer:
    """Everything the recorded body says, up to its end mark; ``kind`` is the dialect's."""
    return settled(lambda ignored: _read(recording, kind(ignored)))


def _read(recording: Recording, answer: StreamedAnswer) -> StreamedAnswer:
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
