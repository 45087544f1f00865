"""Remarks about one answer: what a reader of its numbers must know, each under a name that files can keep."""

from __future__ import annotations

from phasegate.core.timeline import Expected
from phasegate.wire.disproof import (
    LARGEST_STEP,
    disproved,
    ended_at,
    hidden_tokens,
    is_reasoning_hidden,
    is_reasoning_streamed,
    jumps,
)
from phasegate.wire.repeats import is_cumulative
from phasegate.wire.streamed import StreamedAnswer

FLAGS: dict[str, str] = {
    "buffered": "All tokens came in one network read, so prefill cannot be told from decode.",
    "burst": "Some token events shared a network read, so gaps between chunks are not gaps between tokens.",
    "cached_impossible": "More prompt tokens are said to be cached than the prompt has: that count is not used.",
    "cached_prompt": "The server took prompt tokens from a prefix cache, so its TTFT is not that of a cold prompt.",
    "cumulative_text": "Chunks repeat text that came before; moments and counts are right, the joined text is not.",
    "foreign_chunks": "Chunks of another endpoint came than was asked, or payloads of another API among them.",
    "hidden_reasoning": "The model reasoned unseen: TTFT holds that time, TPOT is of the tokens that were streamed.",
    "limit_mismatch": "By its own word the answer ended at its limit, but another number of tokens is counted.",
    "malformed_event": "An event could not be read and was left out; it may have held a token.",
    "multi_token_chunks": "The server counted more tokens than token events came: some chunks hold several.",
    "n_choices": "Several choices were streamed, so one token count covers all of them.",
    "no_done": "The stream ended in order, but without its end mark ([DONE], or message_stop).",
    "no_finish_reason": "The stream ended with usage and [DONE], but a choice never said why it finished.",
    "osl_mismatch": "The answer has another length than was forced, by more than 5 % or 50 tokens.",
    "prompt_length_mismatch": "The server counted another prompt length than the workload promises.",
    "reasoning_as_text": "Reasoning is counted apart, but streamed as ordinary text; all of it is timed.",
    "split_tokens": "The server counted fewer tokens than token events came: some tokens are split over chunks.",
    "unnamed_text": "Text came in a field that is not understood; alone in a chunk it is output if it fits the count.",
    "unterminated_event": "The last event came without its blank line and was read all the same.",
    "usage_inconsistent": "The server's token count contradicts its own stream; nothing is computed from it.",
    "usage_jumps": "A running token count ran ahead of the text or went back; its last value agrees with the end.",
    "usage_missing": "The server proved no token count, so time per output token is undefined.",
    "wrong_content_type": "The stream came under another content type than its own (text/event-stream mostly).",
}
"""Every flag, and what it means."""

OSL_TOLERANCE = 0.05
OSL_TOLERANCE_TOKENS = 50
"""An output length is off when it differs by more than the smaller of these two (AIPerf's rule)."""


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
    lump = answer.output_events == 1 and tokens is not None and tokens - hidden_tokens(answer) > LARGEST_STEP
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


def _about_counts(answer: StreamedAnswer, expected: Expected, tokens: int | None) -> set[str]:
    ledger = answer.ledger
    events = answer.output_events
    promised, limit = expected.prompt_tokens, ended_at(answer, expected)
    denied = disproved(answer, expected, tokens, cumulative=is_cumulative(answer))
    return _named(
        {
            "multi_token_chunks": tokens is not None and tokens > events > 0,
            "split_tokens": tokens is not None and 0 < tokens < events,
            "hidden_reasoning": is_reasoning_hidden(answer),
            "reasoning_as_text": not denied and not answer.hidden_reasoning and is_reasoning_streamed(answer),
            "usage_inconsistent": denied,
            "usage_jumps": not denied and jumps(answer, expected),
            "limit_mismatch": tokens is not None and not denied and limit is not None and limit != tokens,
            "cached_impossible": ledger.caches_more_than_prompt,
            "cached_prompt": (ledger.believed_cached or 0) > expected.tolerated_cached_tokens,
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


def _about_the_dialect(answer: StreamedAnswer, expected: Expected, content_type: str | None) -> set[str]:
    other = answer.endpoint is not None and answer.endpoint != expected.endpoint
    return _named(
        {
            "cumulative_text": is_cumulative(answer),
            "unnamed_text": bool(answer.unnamed.names()),
            "foreign_chunks": other or answer.foreign is not None,
            "wrong_content_type": answer.events > 0
            and content_type is not None
            and answer.content_type not in content_type.lower(),
        }
    )


def _is_off(tokens: int, expected: Expected) -> bool:
    if expected.output_tokens is None:
        return False
    wanted = expected.output_tokens * max(1, expected.choices)
    return abs(tokens - wanted) > min(OSL_TOLERANCE * wanted, OSL_TOLERANCE_TOKENS)
