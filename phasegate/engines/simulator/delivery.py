"""One answer on its way to one client: departures in, bytes out, the truth written down, the fault acted out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from phasegate.engines.simulator import frames, http1
from phasegate.engines.simulator.drip import Drip
from phasegate.engines.simulator.extras import Extras, Part
from phasegate.engines.simulator.faults import Fault, FaultRule
from phasegate.engines.simulator.frames import Frames
from phasegate.engines.simulator.model import Departure
from phasegate.engines.simulator.truth import Sent, Truth
from phasegate.engines.simulator.wire import Wire


class Delivery:
    """Delivers one answer.

    Args:
        wire: the connection.
        truth: the record to fill in.
        events: the bytes of the events.
        words: the answer's tokens, as they stand inside a JSON string.
        rule: the fault that hits this answer, or None.
        stream: whether it is streamed.
        usage: whether it ends with the token counts.
        running_usage: whether every chunk has them.
        reason: its finish reason.
        extras: what it carries beside its text.
    """

    def __init__(
        self,
        wire: Wire,
        truth: Truth,
        events: Frames,
        words: Sequence[bytes],
        rule: FaultRule | None,
        *,
        stream: bool,
        usage: bool,
        running_usage: bool,
        reason: str,
        extras: Extras,
    ) -> None:
        self._wire = wire
        self._drip: Drip | None = None
        if rule is not None and rule.fault is Fault.SLOW_BODY:
            self._wire = self._drip = Drip(wire, rule.seconds)
        self._truth = truth
        self._events = events
        self._words = words
        self._rule = rule
        self._fault = rule.fault if rule is not None else None
        self._stream = stream
        self._usage = usage and self._fault is not Fault.MISSING_USAGE
        self._running_usage = running_usage and self._usage
        self._reason = reason
        self._extras = extras
        self._written = 0
        self._role_due = True
        self._held: bytearray | None = None
        self._held_chunks: list[Sent] = []
        self._after_release: Callable[[], None] | None = None

    @property
    def truth(self) -> Truth:
        """The record of this answer."""
        return self._truth

    def begin(self) -> None:
        """The request was accepted: what leaves before the first token leaves now."""
        if not self._stream:
            return
        if self._fault is Fault.SLOW_LORIS and self._rule is not None:
            self._held = bytearray()
            self._dribble(http1.STREAM_HEAD, self._rule.seconds)
            return
        self._wire.write(http1.STREAM_HEAD)
        if self._fault is Fault.BUFFERED:
            self._held = bytearray()
        if self._fault is Fault.ROLE_EARLY:
            self._put(self._role())

    def deliver(self, departure: Departure, planned: float) -> None:
        """Send one chunk whose moment has come; the last one also ends the answer."""
        first, tokens = departure.first, departure.tokens
        self._written = first + tokens
        if self._stream and self._fault is not Fault.EMPTY_ANSWER:
            for part in self._extras.parts(first, tokens):
                self._put_part(part, planned)
        if departure.last:
            self._end(planned)

    def _put_part(self, part: Part, planned: float) -> None:
        text = b"".join(self._words[part.first : part.first + part.tokens])
        usage = self._counts(part.first + part.tokens) if self._running_usage else None
        event = self._events.text(text, usage, reasoning=part.reasoning)
        self._put(self._before(part.first, part.tokens) + event, planned, part.first, part.tokens)

    def _role(self) -> bytes:
        """The role event, the first time."""
        due, self._role_due = self._role_due, False
        return self._events.role() if due else b""

    def _before(self, first: int, tokens: int) -> bytes:
        """What goes before an event with text: the role, and the cut-off event where the rule wants it."""
        if self._role_due:
            return self._role()
        if self._rule is None or not first <= self._rule.after_tokens < first + tokens:
            return b""
        return _BETWEEN.get(self._rule.fault, b"")

    def _counts(self, written: int | None = None) -> frames.Usage:
        """Token counts after so many tokens; all of them for None."""
        written = self._written if written is None else written
        reasoned = self._extras.reasoned(written)
        written = 0 if self._fault is Fault.EMPTY_ANSWER else written
        if self._fault is Fault.WRONG_USAGE:
            written += (written + 1) // 2
        return frames.usage_object(self._truth.prompt_tokens, written, self._truth.cached_tokens, reasoned)

    def _put(self, data: bytes, planned: float | None = None, first: int = 0, tokens: int = 0) -> None:
        """Send one piece of the body, or hold it back, and note when it left if it has tokens."""
        if not data:
            return
        sent = Sent(planned, None, first, tokens) if planned is not None else None
        if sent is not None:
            self._truth.chunks.append(sent)
        if self._held is not None:
            self._held += http1.chunk(data)
            self._held_chunks += [sent] if sent is not None else []
            return
        if sent is not None and self._drip is None:
            sent.actual = time.monotonic()
        self._wire.write(http1.chunk(data))
        if sent is not None and self._drip is not None:
            self._drip.when_out(lambda: setattr(sent, "actual", time.monotonic()))

    def _dribble(self, rest: bytes, gap: float) -> None:
        self._wire.write(rest[:1])
        if len(rest) > 1:
            self._wire.later(gap, lambda: self._dribble(rest[1:], gap))
        else:
            self._release()

    def _release(self) -> None:
        """Send everything that was held back."""
        held, self._held = self._held, None
        now = time.monotonic()
        for sent in self._held_chunks:
            sent.actual = now
        if held:
            self._wire.write(bytes(held))
        if self._after_release is not None:
            self._after_release()

    def _end(self, planned: float) -> None:
        if self._fault is Fault.BUFFERED and self._held is not None:
            self._put(self._ending())
            self._held += http1.LAST_CHUNK
            self._release()
            self._over("finished")
        elif self._held is not None:
            self._after_release = lambda: self._end(planned)
        elif not self._stream:
            self._end_whole(planned)
        elif self._fault is not None and self._fault in _BREAKS:
            _BREAKS[self._fault](self)
            self._over("broken")
        else:
            self._wire.write(http1.chunk(self._ending()) + http1.LAST_CHUNK)
            self._over("finished")

    def _end_whole(self, planned: float) -> None:
        text = (
            b"".join(self._words[self._extras.reasoning_tokens : self._written])
            if self._fault is not Fault.EMPTY_ANSWER
            else b""
        )
        usage = self._counts() if self._fault is not Fault.MISSING_USAGE else None
        body = self._events.whole(text, self._reason, usage)
        if text:
            self._truth.chunks.append(Sent(planned, time.monotonic(), 0, self._written))
        self._wire.write(http1.response(200, body))
        self._over("finished")

    def _ending(self) -> bytes:
        """The events that end an answer in order."""
        timings = self._extras.timings_of(self._truth, self._written)
        usage = self._events.usage(self._counts()) if self._usage else b""
        done = b"" if self._fault is Fault.NO_DONE else frames.DONE
        return self._role() + self._events.finish(self._reason, timings) + usage + done

    def _over(self, outcome: str) -> None:
        if self._drip is not None:
            self._drip.when_out(lambda: self._note_end(outcome))
        else:
            self._note_end(outcome)
        if self._fault not in _NOTHING_MORE:
            self._wire.done()

    def _note_end(self, outcome: str) -> None:
        self._truth.outcome = outcome
        self._truth.ended = time.monotonic()

    def _cut_a_chunk(self) -> None:
        whole = http1.chunk(self._events.text(b" cut"))
        self._wire.write(whole[: len(whole) // 2])
        self._wire.half_close()

    def _send_garbage(self) -> None:
        self._wire.write(http1.chunk(frames.GARBAGE) + http1.LAST_CHUNK)

    def _truncate(self) -> None:
        self._wire.write(http1.chunk(frames.DONE) + http1.LAST_CHUNK)

    def _send_error(self) -> None:
        self._wire.write(
            http1.chunk(frames.error_event("the simulated engine failed") + frames.DONE) + http1.LAST_CHUNK
        )

    def _stay_silent(self) -> None:
        """Send nothing more; the client has to give up."""

    def _reset(self) -> None:
        self._wire.reset()

    def _half_close(self) -> None:
        self._wire.half_close()


_BREAKS: Mapping[Fault, Callable[[Delivery], None]] = {
    Fault.RESET_MID_STREAM: Delivery._reset,
    Fault.HALF_CLOSE: Delivery._half_close,
    Fault.CUT_CHUNK: Delivery._cut_a_chunk,
    Fault.GARBAGE: Delivery._send_garbage,
    Fault.TRUNCATED: Delivery._truncate,
    Fault.SILENT_STALL: Delivery._stay_silent,
    Fault.ERROR_IN_STREAM: Delivery._send_error,
}

_BETWEEN: Mapping[Fault, bytes] = {Fault.MALFORMED_EVENT: frames.MALFORMED, Fault.EARLY_DONE: frames.DONE}
"""Faults that put something between two tokens, and what."""

_NOTHING_MORE = frozenset({Fault.RESET_MID_STREAM, Fault.HALF_CLOSE, Fault.CUT_CHUNK, Fault.SILENT_STALL})
"""Faults after which the connection takes no further request."""
