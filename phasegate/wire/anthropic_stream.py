"""A recording of an Anthropic Messages stream, understood: raw reads -> `Timeline`.

The same events, outcome and flags as `openai_stream`; only what the payloads say differs. One message comes in blocks
(text, thinking, tool use), each opened, continued by deltas and closed; usage comes in two parts, at the start for the
prompt and before the end, cumulative, for the output. A pure function of the recording, and no input makes it raise.

Source: https://platform.claude.com/docs/en/build-with-claude/streaming and the Messages reference beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from phasegate.core.timeline import Channel, Recording, Timeline
from phasegate.wire.chunks import read_stream
from phasegate.wire.foreign import MESSAGES
from phasegate.wire.messages import of_payload
from phasegate.wire.numbers import count, writable
from phasegate.wire.openai_stream import timeline_of
from phasegate.wire.sse import Event
from phasegate.wire.streamed import StreamedAnswer
from phasegate.wire.texts import arguments_in, is_sealed, text_in
from phasegate.wire.unnamed import texts_in

OWN = frozenset({MESSAGES})

COUNTED = "usage.output_tokens"
"""What this dialect calls the count of output tokens."""

TOOL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Blocks whose name and input the model writes."""

DELTAS: Mapping[str, tuple[Channel, str]] = {
    "text_delta": (Channel.CONTENT, "text"),
    "thinking_delta": (Channel.REASONING, "thinking"),
    "input_json_delta": (Channel.TOOL, "partial_json"),
}
"""Type of a delta -> its channel, and the key of its text."""

SILENT_DELTAS = frozenset({"signature_delta", "citations_delta"})
"""Types of deltas without a word of the model's."""


def decode(recording: Recording) -> Timeline:
    """What the recorded request was, in token events, counts and moments."""
    return timeline_of(recording, read_stream(recording, MessagesAnswer))


class MessagesAnswer(StreamedAnswer):
    """What the events of one Messages response say. Its only choice has index 0."""

    __slots__ = ("_cached", "_created", "_silent_thinking", "_uncached")

    def __init__(self, ignored: Collection[str] = ()) -> None:
        super().__init__(ignored)
        self._uncached: int | None = None
        self._cached: int | None = None
        self._created: int | None = None
        self._silent_thinking = False  # a thinking block is open of which no text came yet

    def _take_payload(self, event: Event, payload: Mapping[str, Any]) -> None:
        kind = payload.get("type")
        if not isinstance(kind, str):
            kind = event.type
        take = _TAKE.get(kind)
        if take is not None:
            take(self, event.at, payload)
        elif kind == "error" or payload.get("error"):
            self.fail(of_payload(payload))
        elif self.foreign is None:
            self.note_foreign(payload, OWN)
            if self.foreign is None:
                self._take_unknown(event.at, payload)

    def _take_unknown(self, at: float, payload: Mapping[str, Any]) -> None:
        """An event of a kind that is not known: a delta in it is output all the same, other text is remarked."""
        if isinstance(payload.get("delta"), dict):
            self._output_unnamed(at, payload["delta"])
        else:
            for one in texts_in(payload):
                self.unnamed.outside(one)

    def _start(self, _at: float, payload: Mapping[str, Any]) -> None:
        """``message_start``: the model, and what is known of the prompt. Its output count is a mere beginning."""
        message = _mapping(payload.get("message"))
        if self.model is None and isinstance(message.get("model"), str):
            self.model = writable(message["model"])
        self.state(0)
        self._take_prompt(_mapping(message.get("usage")))

    def _open(self, at: float, payload: Mapping[str, Any]) -> None:
        """``content_block_start``: seldom with text; with the tool's name where one is called."""
        block = _mapping(payload.get("content_block"))
        kind = block.get("type")
        self._silent_thinking = kind == "thinking"
        self.hidden_reasoning = self.hidden_reasoning or kind == "redacted_thinking"
        if kind == "text":
            self._output(at, Channel.CONTENT, block.get("text"))
        elif kind == "thinking":
            self._output(at, Channel.REASONING, block.get("thinking"))
        elif kind in TOOL_BLOCKS:
            written = arguments_in(block.get("input"))
            self._note_call(payload, written)
            self._output(at, Channel.TOOL, text_in(block.get("name")) + written)
        elif isinstance(kind, str) and not is_sealed(block):
            self._output_unnamed(at, block, "content_block.")

    def _go_on(self, at: float, payload: Mapping[str, Any]) -> None:
        """``content_block_delta``."""
        delta = _mapping(payload.get("delta"))
        kind = delta.get("type")
        channel, key = DELTAS.get(kind, (None, "")) if isinstance(kind, str) else (None, "")
        read = arguments_in if channel is Channel.TOOL else text_in
        text = read(delta.get(key))
        if channel is Channel.TOOL:
            self._note_call(payload, text)
        if channel is not None and text:
            self._output(at, channel, text)
        elif not (isinstance(kind, str) and kind in SILENT_DELTAS):
            self._output_unnamed(at, delta)

    def _close(self, _at: float, _payload: Mapping[str, Any]) -> None:
        """``content_block_stop``: a thinking block that ends without a word was thought unseen."""
        self.hidden_reasoning = self.hidden_reasoning or self._silent_thinking
        self._silent_thinking = False

    def _change(self, _at: float, payload: Mapping[str, Any]) -> None:
        """``message_delta``: why the message ends, and the counts, cumulative."""
        reason = _mapping(payload.get("delta")).get("stop_reason")
        if isinstance(reason, str) and reason:
            self.state(0).finish_reason = writable(reason)
        usage = _mapping(payload.get("usage"))
        self._take_prompt(usage)
        thinking = _mapping(usage.get("output_tokens_details")).get("thinking_tokens")
        told = {"completion_tokens": usage["output_tokens"]} if "output_tokens" in usage else {}
        self.ledger.take(
            {**told, "completion_tokens_details": {"reasoning_tokens": thinking}},
            on_choice=False,
            called=COUNTED,
        )

    def _stop(self, at: float, _payload: Mapping[str, Any]) -> None:
        """``message_stop``: the end mark."""
        self.done_at = at

    def _ping(self, _at: float, _payload: Mapping[str, Any]) -> None:
        """``ping``: a sign of life, no token."""

    def _take_prompt(self, usage: Mapping[str, Any]) -> None:
        """The prompt's tokens: those that were read anew, those from the cache, and those written into it."""
        self._uncached = _newest(usage.get("input_tokens"), self._uncached)
        self._cached = _newest(usage.get("cache_read_input_tokens"), self._cached)
        self._created = _newest(usage.get("cache_creation_input_tokens"), self._created)
        if self._uncached is None:
            return
        prompt = self._uncached + (self._cached or 0) + (self._created or 0)
        self.ledger.take({"prompt_tokens": prompt, "cached_tokens": self._cached}, on_choice=False, called=COUNTED)

    def _note_call(self, payload: Mapping[str, Any], written: str) -> None:
        """Remember a piece of a call's arguments by its block."""
        if written:
            self.calls.setdefault((0, str(payload.get("index"))), []).append(written)

    def _output(self, at: float, channel: Channel, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        if channel is Channel.REASONING:
            self._silent_thinking = False
        self.endpoint = "messages"
        self.put(at, 0, [(channel, text)], (), last=False)

    def _output_unnamed(self, at: float, fields: Mapping[str, Any], place: str = "delta.") -> None:
        """Text of a delta or a block in fields that are not understood."""
        found = list(texts_in(fields, ("type",), place))
        if found and self.put(at, 0, [], found, last=False):
            self.endpoint = "messages"


_TAKE: Mapping[str, Callable[[MessagesAnswer, float, Mapping[str, Any]], None]] = {
    "message_start": MessagesAnswer._start,
    "content_block_start": MessagesAnswer._open,
    "content_block_delta": MessagesAnswer._go_on,
    "content_block_stop": MessagesAnswer._close,
    "message_delta": MessagesAnswer._change,
    "message_stop": MessagesAnswer._stop,
    "ping": MessagesAnswer._ping,
}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _newest(found: object, before: int | None) -> int | None:
    number = count(found)
    return before if number is None else number
