"""One request drawn as its two phases: how long it waited for the first token, how long it wrote the rest."""

from __future__ import annotations

from phasegate.core.metric import (
    Undefined,
    request_latency,
    streamed_tokens,
    time_per_output_token,
    time_to_first_token,
)
from phasegate.core.timeline import Timeline
from phasegate.core.units import format_seconds
from phasegate.wire.answer_words import OTHER_LENGTH, lengths_words

BAR = "█"
REST = "·"
PLAIN_BAR = "#"
PLAIN_REST = "."


def draw_phases(timeline: Timeline, *, width: int = 48, plain: bool = False) -> list[str]:
    """The request as lines of text: a heading, a bar for each phase, and remarks.

    ``width`` is the length of the bars in characters; ``plain`` draws them in ASCII.
    """
    ttft, total = time_to_first_token(timeline), request_latency(timeline)
    if isinstance(ttft, Undefined) or isinstance(total, Undefined):
        return [*_failure(timeline), *_remarks(timeline)]
    # At least one character for each phase that took any time at all, so that none is invisible.
    filled = min(max(1, round(width * ttft / total)), width - 1) if total > ttft > 0 else width
    full, rest = (PLAIN_BAR, PLAIN_REST) if plain else (BAR, REST)
    prefill = full * filled + rest * (width - filled)
    decode = rest * filled + full * (width - filled)
    return [
        f"{timeline.request_id}: {_tokens(timeline)}, {format_seconds(total)} in all",
        f"  prefill  {prefill}  TTFT {format_seconds(ttft)}{_cached(timeline)}",
        f"  decode   {decode}  {_decode_words(timeline, total - ttft)}",
        *_remarks(timeline),
    ]


def _tokens(timeline: Timeline) -> str:
    asked = "?" if timeline.prompt_tokens is None else f"{timeline.prompt_tokens}"
    if timeline.output_tokens is not None:
        answered = f"{timeline.output_tokens}"
    else:
        answered = f"at least {timeline.output_tokens_estimate}"
    return f"{asked} prompt tokens -> {answered} output tokens"


def _cached(timeline: Timeline) -> str:
    return f" ({timeline.cached_tokens} prompt tokens from the cache)" if timeline.cached_tokens else ""


def _decode_words(timeline: Timeline, span: float) -> str:
    tpot = time_per_output_token(timeline)
    if isinstance(tpot, Undefined):
        return f"{format_seconds(span)}; TPOT undefined: {tpot.reason}"
    streamed = streamed_tokens(timeline)
    assert streamed is not None
    return f"{streamed - 1} x TPOT {format_seconds(tpot)} = {format_seconds(span)}"


def _failure(timeline: Timeline) -> list[str]:
    kind = timeline.error_kind or timeline.status
    words = f": {timeline.error_message}" if timeline.error_message else ""
    seen = time_to_first_token(timeline)
    begun = "" if isinstance(seen, Undefined) else f"; its first token had come after {format_seconds(seen)}"
    return [f"{timeline.request_id}: failed as {kind}{words}{begun}"]


def _remarks(timeline: Timeline) -> list[str]:
    from phasegate.wire.openai_stream import FLAGS

    return [f"  note: {flag}: {FLAGS.get(flag, '')}{_particulars(timeline, flag)}" for flag in timeline.flags]


def _particulars(timeline: Timeline, flag: str) -> str:
    if flag == OTHER_LENGTH:
        return f" ({lengths_words(timeline)})"
    return f" ({', '.join(timeline.unnamed_fields)})" if flag == "unnamed_text" else ""
