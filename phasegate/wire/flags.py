"""Remarks about one answer: what a reader of its numbers must know, each under a name that files can keep."""

from __future__ import annotations

import itertools

from phasegate.timeline import Channel, Expected
from phasegate.wire.chunks import StreamedAnswer

FLAGS: dict[str, str] = {
    "buffered": "All tokens came in one network read, so prefill cannot be told from decode.",
    "burst": "Some token events shared a network read, so gaps between chunks are not gaps between tokens.",
    "cached_prompt": "The server took prompt tokens from a prefix cache, so its TTFT is not that of a cold prompt.",
    "cumulative_text": "Every chunk repeats the text so far; moments and counts are right, the joined text is not.",
    "foreign_chunks": "Chunks of another endpoint came than was asked, or payloads of another API among them.",
    "hidden_reasoning": "The model reasoned unseen: TTFT holds that time, TPOT is of the tokens that were streamed.",
    "malformed_event": "An event could not be read and was left out; it may have held a token.",
    "multi_token_chunks": "The server counted more tokens than token events came: some chunks hold several.",
    "n_choices": "Several choices were streamed, so one token count covers all of them.",
    "no_done": "The stream ended in order, but without its end mark ([DONE], or message_stop).",
    "no_finish_reason": "The stream ended with usage and [DONE], but a choice never said why it finished.",
    "osl_mismatch": "The answer has another length than was forced, by more than 5 % or 50 tokens.",
    "prompt_length_mismatch": "The server counted another prompt length than the workload promises.",
    "split_tokens": "The server counted fewer tokens than token events came: some tokens are split over chunks.",
    "unterminated_event": "The last event came without its blank line and was read all the same.",
    "usage_inconsistent": "The server's token count contradicts its own stream; nothing is computed from it.",
    "usage_missing": "The server proved no token count, so time per output token is undefined.",
    "wrong_content_type": "The stream came under another content type than its own (text/event-stream mostly).",
}
"""Every flag, and what it means."""

OSL_TOLERANCE = 0.05
OSL_TOLERANCE_TOKENS = 50
"""An output length is off when it differs by more than the smaller of these two (AIPerf's rule)."""

LARGEST_STEP = 16
"""Tokens that one decoding step or streaming interval yields at most; a lone event with more was collected."""


LARGEST_SPLIT = 4
"""Token events that one token is split into at most: a token has some four letters, and a proxy that smooths its
stream sends them one by one. A count further below the events is not believed."""


def flags_of(
    answer: StreamedAnswer, expected: Expected, status: str, content_type: str | None = None
) -> tuple[str, ...]:
    """The flags of an answer, sorted. A failed request carries only what its events show."""
    tokens, _ = answer.output_tokens()
    found = _about_arrival(answer, tokens) | _about_counts(answer, expected, tokens)
    found |= _about_the_dialect(answer, expected, content_type)
    if status != "error":
        found |= _about_the_end(answer, expected, tokens)
    return tuple(sorted(found))


def _named(remarks: dict[str, bool]) -> set[str]:
    return {flag for flag, holds in remarks.items() if holds}


def _about_arrival(answer: StreamedAnswer, tokens: int | None) -> set[str]:
    choices = answer.choices.values()
    together = sum(choice.same_read for choice in choices)
    moments = {moment for choice in choices for moment in (choice.first_at, choice.last_at) if moment is not None}
    lump = answer.output_events == 1 and tokens is not None and tokens - _hidden(answer) > LARGEST_STEP
    buffered = lump or (together > 0 and len(moments) == 1)
    return _named(
        {
            "buffered": buffered,
            "burst": together > 0 and not buffered,
            "malformed_event": answer.malformed > 0,
            "n_choices": len(choices) > 1,
            "unterminated_event": answer.unterminated,
        }
    )


BEYOND_LIMIT = 2
"""A count above this many times the output limit that was sent is not believed, whatever came."""

OVERSHOOT = 4
"""Tokens that a count may exceed the limit by where the events kept to it: some servers write one or two too many."""


def _about_counts(answer: StreamedAnswer, expected: Expected, tokens: int | None) -> set[str]:
    ledger = answer.ledger
    events = answer.output_events
    promised = expected.prompt_tokens
    return _named(
        {
            "multi_token_chunks": tokens is not None and tokens > events > 0,
            "split_tokens": tokens is not None and 0 < tokens < events,
            "hidden_reasoning": is_reasoning_hidden(answer),
            "usage_inconsistent": ledger.contradicts(events)
            or _is_beyond_limit(answer, tokens, expected)
            or _is_beyond_text(answer, tokens),
            "cached_prompt": (ledger.cached or 0) > expected.tolerated_cached_tokens,
            "prompt_length_mismatch": None not in (promised, ledger.prompt) and promised != ledger.prompt,
        }
    )


def _about_the_end(answer: StreamedAnswer, expected: Expected, tokens: int | None) -> set[str]:
    return _named(
        {
            "usage_missing": tokens is None,
            "no_done": answer.done_at is None,
            "no_finish_reason": any(choice.finish_reason is None for choice in answer.choices.values()),
            "osl_mismatch": tokens is not None and _is_off(tokens, expected),
        }
    )


def _is_beyond_limit(answer: StreamedAnswer, tokens: int | None, expected: Expected) -> bool:
    """Whether more tokens are counted than the request allowed, by far or though the stream kept to it."""
    if tokens is None or expected.max_tokens is None:
        return False
    limit = expected.max_tokens * expected.choices
    kept = 0 < answer.output_events <= limit
    return tokens > BEYOND_LIMIT * limit + LARGEST_STEP or (kept and tokens - _hidden(answer) > limit + OVERSHOOT)


def is_reasoning_hidden(answer: StreamedAnswer) -> bool:
    """Whether the model reasoned without a word of it in the stream."""
    if answer.hidden_reasoning:
        return True
    return bool(answer.ledger.reasoning) and all(event.channel is not Channel.REASONING for event in answer.tokens)


def _hidden(answer: StreamedAnswer) -> int:
    """Tokens of reasoning that are known to be in the count and not in the stream."""
    return answer.ledger.reasoning or 0 if is_reasoning_hidden(answer) else 0


def _is_beyond_text(answer: StreamedAnswer, tokens: int | None) -> bool:
    """Whether the count and the stream cannot be of one answer: too many events for it, or too little text.

    A streamed token holds a byte at least, beside the few that end a turn or open a tool call.
    """
    if not tokens or not answer.tokens:
        return False
    if answer.output_events > LARGEST_SPLIT * tokens:
        return True
    believed = tokens - _hidden(answer) - LARGEST_STEP
    if answer.hidden_reasoning or believed <= len(answer.tokens):
        return False
    return believed > sum(len(event.text.encode()) for event in answer.tokens)


def _about_the_dialect(answer: StreamedAnswer, expected: Expected, content_type: str | None) -> set[str]:
    other = answer.endpoint is not None and answer.endpoint != expected.endpoint
    return _named(
        {
            "cumulative_text": _is_cumulative(answer),
            "foreign_chunks": other or answer.foreign is not None,
            "wrong_content_type": answer.events > 0
            and content_type is not None
            and answer.content_type not in content_type.lower(),
        }
    )


def _is_cumulative(answer: StreamedAnswer) -> bool:
    """Whether each of three or more texts begins with the one before it and goes on."""
    texts = (event.text for event in answer.tokens if event.channel is Channel.CONTENT and event.choice == 0)
    grown = 0
    for earlier, later in itertools.pairwise(texts):
        if len(later) <= len(earlier) or not later.startswith(earlier):
            return False
        grown += 1
    return grown >= 2


def _is_off(tokens: int, expected: Expected) -> bool:
    if expected.output_tokens is None:
        return False
    wanted = expected.output_tokens * max(1, expected.choices)
    return abs(tokens - wanted) > min(OSL_TOLERANCE * wanted, OSL_TOLERANCE_TOKENS)
