"""Remarks about one answer: what a reader of its numbers must know, each under a name that files can keep."""

from __future__ import annotations

from phasegate.timeline import Expected
from phasegate.wire.chunks import StreamedAnswer

FLAGS: dict[str, str] = {
    "buffered": "All tokens came in one network read, so prefill cannot be told from decode.",
    "burst": "Some token events shared a network read, so gaps between chunks are not gaps between tokens.",
    "cached_prompt": "The server took prompt tokens from a prefix cache, so its TTFT is not that of a cold prompt.",
    "malformed_event": "An event could not be read and was left out; it may have held a token.",
    "multi_token_chunks": "The server counted more tokens than token events came: some chunks hold several.",
    "n_choices": "Several choices were streamed, so one token count covers all of them.",
    "no_done": "The stream ended in order, but without [DONE].",
    "no_finish_reason": "The stream ended with usage and [DONE], but a choice never said why it finished.",
    "osl_mismatch": "The answer has another length than was forced, by more than 5 % or 50 tokens.",
    "prompt_length_mismatch": "The server counted another prompt length than the workload promises.",
    "unterminated_event": "The last event came without its blank line and was read all the same.",
    "usage_inconsistent": "The server's token count contradicts its own stream; nothing is computed from it.",
    "usage_missing": "The server proved no token count, so time per output token is undefined.",
}
"""Every flag, and what it means."""

OSL_TOLERANCE = 0.05
OSL_TOLERANCE_TOKENS = 50
"""An output length is off when it differs by more than the smaller of these two (AIPerf's rule)."""

LARGEST_STEP = 16
"""Tokens that one decoding step or streaming interval yields at most; a lone event with more was collected."""


def flags_of(answer: StreamedAnswer, expected: Expected, status: str) -> tuple[str, ...]:
    """The flags of an answer, sorted. A failed request carries only what its events show."""
    tokens, _ = answer.output_tokens()
    found = _about_arrival(answer, tokens) | _about_counts(answer, expected, tokens)
    if status != "error":
        found |= _about_the_end(answer, expected, tokens)
    return tuple(sorted(found))


def _named(remarks: dict[str, bool]) -> set[str]:
    return {flag for flag, holds in remarks.items() if holds}


def _about_arrival(answer: StreamedAnswer, tokens: int | None) -> set[str]:
    choices = answer.choices.values()
    together = sum(choice.same_read for choice in choices)
    moments = {moment for choice in choices for moment in (choice.first_at, choice.last_at) if moment is not None}
    lump = answer.output_events == 1 and tokens is not None and tokens > LARGEST_STEP
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
"""A count above this many times the output limit that was sent is not believed."""


def _about_counts(answer: StreamedAnswer, expected: Expected, tokens: int | None) -> set[str]:
    ledger = answer.ledger
    events = answer.output_events
    promised = expected.prompt_tokens
    return _named(
        {
            "multi_token_chunks": tokens is not None and tokens > events > 0,
            "usage_inconsistent": ledger.contradicts(events) or _is_beyond_limit(tokens, expected),
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


def _is_beyond_limit(tokens: int | None, expected: Expected) -> bool:
    """Whether more tokens are counted than the request allowed, by far: some servers write one or two too many."""
    if tokens is None or expected.max_tokens is None:
        return False
    return tokens > BEYOND_LIMIT * expected.max_tokens * expected.choices + LARGEST_STEP


def _is_off(tokens: int, expected: Expected) -> bool:
    if expected.output_tokens is None:
        return False
    wanted = expected.output_tokens * max(1, expected.choices)
    return abs(tokens - wanted) > min(OSL_TOLERANCE * wanted, OSL_TOLERANCE_TOKENS)
