"""One streamed answer, put together piece by piece: token events, counts, how each choice finished, errors.

What every dialect has in common; how a payload is read is each dialect's own. Nothing is judged here; `outcome` and
`flags` do that. Whatever a payload holds, reading it never raises: what is not of the expected type is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from phasegate.core.timeline import Channel, TokenEvent
from phasegate.wire.foreign import dialect_of
from phasegate.wire.messages import WORDLESS, clean
from phasegate.wire.numbers import writable
from phasegate.wire.sse import Event
from phasegate.wire.unnamed import Found, Unnamed
from phasegate.wire.usage import Ledger

Answer = TypeVar("Answer", bound="StreamedAnswer")

DONE = "[DONE]"

REPEATED = 3
"""Events of a channel from which on one more with all of their text repeats them; fewer may be a model's stutter."""

STRANGE_FIELDS, STRANGE_LENGTH = 4, 60
"""Fields that a message names, and characters of each."""


class Choice:
    """One of the parallel answers: its output events and its end."""

    __slots__ = ("chunks", "events", "finish_reason", "first_at", "last_at", "same_read")

    def __init__(self) -> None:
        self.chunks = 0
        """Chunks of this choice, with output or without."""
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
        unnamed: fields whose text is not understood.
        calls: choice and key of a tool call -> what came of its arguments, piece by piece.
    """

    __slots__ = (
        "_lengths",
        "calls",
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
        "unnamed",
        "unterminated",
    )

    content_type = "event-stream"
    """What a content type of such an answer has in it."""

    def __init__(self, ignored: Collection[str] = ()) -> None:
        """``ignored`` are fields that an earlier reading of the same body found to be no output."""
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
        self.unnamed = Unnamed(ignored)
        self.calls: dict[tuple[int, str], list[str]] = {}
        self._lengths: dict[Channel, int] = {}

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
        """Read one JSON object, in the words of the dialect."""
        raise NotImplementedError

    def note_foreign(self, payload: Mapping[str, Any], own: frozenset[str]) -> None:
        """Remember whose dialect a payload speaks that is not one of ``own``."""
        dialect = dialect_of(payload)
        if dialect not in own:
            self.foreign = dialect

    def put(
        self,
        at: float,
        index: int,
        pieces: list[tuple[Channel, str]],
        strange: Sequence[Found],
        last: bool,
        running: int | None = None,
        listed: int = 0,
    ) -> bool:
        """Take what one chunk holds for one choice; whether any of it is output."""
        state = self.state(index)
        state.chunks += 1
        pieces = [piece for piece in pieces if not self._is_repeated(*piece)]
        last = last or state.finish_reason is not None
        if pieces:
            self.unnamed.answered = True
            for one in strange:
                if all(one.text != text for _, text in pieces):
                    self.unnamed.beside(one)
        elif strange:
            pieces = self._from_unnamed(strange, first=state.chunks == 1, last=last)
        if not pieces:
            return False
        state.output_at(at)
        self.unlisted += not listed
        self.add(at, index, pieces, self.ledger.proven_by(running, listed))
        return True

    def _from_unnamed(self, strange: Sequence[Found], *, first: bool, last: bool) -> list[tuple[Channel, str]]:
        """Output of a chunk that has text in fields only that are not understood; none where it repeats the answer."""
        new = (one for one in strange if not self._is_said(one.text))
        texts = [one.text for one in new if self.unnamed.alone(one, first=first, last=last)]
        return [(Channel.UNNAMED, "".join(texts))] if texts else []

    def _is_said(self, text: str) -> bool:
        """Whether a text is all that came in a known channel so far."""
        channels = [channel for channel, length in self._lengths.items() if length == len(text)]
        return any("".join(one.text for one in self.tokens if one.channel is channel) == text for channel in channels)

    def _is_repeated(self, channel: Channel, text: str) -> bool:
        """Whether a text is the whole of its channel once more, as some servers send it before the end.

        Calls are left to `repeats`: whose arguments come again is a question of each call.
        """
        if channel is Channel.TOOL or self._lengths.get(channel) != len(text):
            return False
        before = [one.text for one in self.tokens if one.channel is channel]
        return len(before) >= REPEATED and "".join(before) == text

    def room(self) -> int | None:
        """Tokens that the count leaves beside the text that is understood; None where it is unknown or too low."""
        count, _ = self.output_tokens()
        known = [one.text for one in self.tokens if one.channel is not Channel.UNNAMED]
        if count is None or count < len(known):
            return None
        words = len("".join(known).split())
        return count - max(len(known), words if words <= count else 0)

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
            if channel is not Channel.UNNAMED:
                self._lengths[channel] = self._lengths.get(channel, 0) + len(text)

    def fail(self, message: str) -> None:
        """Note an error of the server; the first one stands."""
        if self.error is None:
            self.error = message or WORDLESS


def settled(read: Callable[[frozenset[str]], Answer]) -> Answer:
    """An answer, read again where whole it shows that a field which was taken for output is none.

    ``read`` reads the body anew; it is given the fields to ignore.
    """
    answer = read(frozenset())
    answer.unnamed.room = answer.room()
    ignored = answer.unnamed.no_output()
    if not ignored:
        return answer
    again = read(ignored)
    again.unnamed.room = answer.unnamed.room
    return again
