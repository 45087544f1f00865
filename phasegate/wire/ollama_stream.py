"""A recording of Ollama's own chat stream, understood: raw reads -> `Timeline`.

No events here: each line is a JSON object with a piece of the message, and the last one, ``done``, holds the counts
and the server's own times (nanoseconds, under their own names). Everything else is as in `openai_stream`. A pure
function of the recording, and no input makes it raise.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md, "Generate a chat completion".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phasegate.core.timeline import Ending, Recording, Timeline
from phasegate.wire.deltas import Output, output_of
from phasegate.wire.foreign import OLLAMA, dialect_of
from phasegate.wire.messages import of_payload, parse
from phasegate.wire.numbers import readings, writable
from phasegate.wire.openai_stream import timeline_of
from phasegate.wire.sse import Event
from phasegate.wire.streamed import StreamedAnswer, settled
from phasegate.wire.unnamed import texts_in

OWN = frozenset({OLLAMA})

TIMES = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
"""The server's own times on the last line, in nanoseconds."""

_OF_A_LINE = ("message", "response", "thinking")

COUNTS = {"completion_tokens": "eval_count", "prompt_tokens": "prompt_eval_count"}
"""Our name of a count -> the last line's."""


def decode(recording: Recording) -> Timeline:
    """What the recorded request was, in token events, counts and moments.

    A token event's moment is that of the read which brought the end of its line.
    """
    return timeline_of(recording, settled(lambda ignored: _read(recording, OllamaAnswer(ignored))))


def _read(recording: Recording, answer: OllamaAnswer) -> OllamaAnswer:
    for line in _lines(recording):
        answer.take(line)
        if answer.done_at is not None:
            break
    return answer


class OllamaAnswer(StreamedAnswer):
    """What the lines of one response say."""

    __slots__ = ()

    content_type = "ndjson"

    def take(self, event: Event) -> None:
        """Read one line."""
        if event.data.startswith(("data:", "event:")):
            self._take_strange(event)
        elif event.data.strip():
            super().take(event)

    def _take_strange(self, event: Event) -> None:
        """A line of an event stream, which is another dialect."""
        self.events += 1
        self.malformed += 1
        payload = parse(event.data.partition(":")[2])
        if self.foreign is None and isinstance(payload, dict):
            self.foreign = dialect_of(payload)

    def _take_payload(self, event: Event, payload: Mapping[str, Any]) -> None:
        if payload.get("error"):
            self.fail(of_payload(payload))
        elif isinstance(payload.get("message"), dict) or "done" in payload:
            self._take_line(event.at, payload)
        elif self.foreign is None:
            self.note_foreign(payload, OWN)
            for one in texts_in(payload) if self.foreign is None else ():
                self.unnamed.outside(one)

    def _take_line(self, at: float, payload: Mapping[str, Any]) -> None:
        if self.model is None and isinstance(payload.get("model"), str):
            self.model = writable(payload["model"])
        output, ended = _output(payload), payload.get("done") is True
        beside = [*output.unnamed, *texts_in(payload, _OF_A_LINE)]
        if self.put(at, 0, output.pieces, beside, last=ended):
            self.endpoint = "ollama"
        if ended:
            self._finish(at, payload)

    def _finish(self, at: float, payload: Mapping[str, Any]) -> None:
        reason = payload.get("done_reason")
        self.state(0).finish_reason = writable(reason) if isinstance(reason, str) and reason else None
        self.ledger.take(
            {ours: payload[theirs] for ours, theirs in COUNTS.items() if theirs in payload},
            on_choice=False,
            called="eval_count",
        )
        self.timings = readings({name: payload[name] for name in TIMES if name in payload}) or None
        self.done_at = at


def _output(payload: Mapping[str, Any]) -> Output:
    """What a line holds: a piece of the message, or, where a text is completed, of the response."""
    if "message" in payload:
        return output_of({"message": payload["message"]})
    return output_of({"message": {"content": payload.get("response"), "thinking": payload.get("thinking")}})


def _lines(recording: Recording) -> Iterator[Event]:
    """The body's lines, each with the moment of the read that brought its end."""
    held: list[bytes] = []
    at = recording.ended_at
    for read in recording.reads:
        at = read.at
        *ended, left = read.data.split(b"\n")
        for piece in ended:
            yield Event("message", b"".join((*held, piece)).decode("utf-8", "replace"), at)
            held = []
        if left:
            held.append(left)
    if held and recording.ending is Ending.EOF:
        yield Event("message", b"".join(held).decode("utf-8", "replace"), at)
