"""Which token counts an answer itself disproves: by its limit, by its token events, or by its text.

A count is the server's own word, and TPOT divides by it. It is believed until the answer says otherwise: one that ended
for its length has as many tokens as its limit, an answer has as many tokens as words at least, and no more than bytes.
What only looks odd is left to `flags`. No real engine whose stream is on record is refused by any of these rules.
"""

from __future__ import annotations

from phasegate.core.timeline import Channel, Expected
from phasegate.wire.repeats import texts_grow
from phasegate.wire.streamed import StreamedAnswer

LARGEST_STEP = 16
"""Tokens that one decoding step or streaming interval yields at most; a lone event with more was collected."""

LARGEST_SPLIT = 4
"""Token events that one token is split into at most: a token has some four letters, and a proxy that smooths its
stream sends them one by one. A count further below the events is not believed."""

BEYOND_LIMIT = 2
"""A count above this many times the output limit that was sent is not believed, whatever came."""

OVERSHOOT = 4
"""Tokens that a count may exceed the limit by where chunks hold several: a step of guesses may end beyond it."""

TOLERANCE = 0.05
"""Share of a limit by which a count may be beside it: so much would TPOT be off, were the limit right."""

STREAMED_MARGIN = 0.1
"""Share of a count by which words or token events may differ from it and still bear it out: marks around reasoning and
the tokens that end a turn are counted by some servers and streamed by none."""

ENDED_AT_LIMIT = frozenset({"length", "max_tokens"})
"""Words of OpenAI's and of Anthropic's dialect for an answer that its limit ended."""


def disproved(answer: StreamedAnswer, expected: Expected, tokens: int | None, *, cumulative: bool = False) -> bool:
    """Whether the count of an answer cannot be true.

    Args:
        answer: what came.
        expected: what the sender knew.
        tokens: the count; None without one, which nothing disproves.
        cumulative: chunks repeat text that came before, so that they do not begin where words do.
    """
    ledger = answer.ledger
    if ledger.contradicts(answer.output_events) or (ledger.shrank and not is_borne_out(answer, expected)):
        return True
    if tokens is None:
        return False
    return (
        _is_beyond_limit(answer, tokens, expected)
        or _is_below_limit(answer, tokens, expected)
        or _is_beyond_events(answer, tokens)
        or (_is_beyond_text(answer, tokens) and not _are_tokens_held_back(answer, expected))
        or (not cumulative and _is_below_words(answer, tokens, expected))
    )


def ended_at(answer: StreamedAnswer, expected: Expected) -> int | None:
    """The limit that ended an answer by its own word; None for other ends, several choices and unknown limits."""
    limit = expected.max_tokens if expected.max_tokens is not None else expected.output_tokens
    if limit is None or expected.choices > 1 or len(answer.choices) != 1:
        return None
    reasons = {choice.finish_reason for choice in answer.choices.values()}
    return limit if reasons <= ENDED_AT_LIMIT else None


def is_reasoning_hidden(answer: StreamedAnswer) -> bool:
    """Whether the model reasoned without a word of it in the stream."""
    if answer.hidden_reasoning:
        return True
    return _lacks_reasoning(answer) and not is_reasoning_streamed(answer)


def hidden_tokens(answer: StreamedAnswer) -> int:
    """Tokens of reasoning that are known to be in the count and not in the stream."""
    return answer.ledger.reasoning or 0 if is_reasoning_hidden(answer) else 0


def is_reasoning_streamed(answer: StreamedAnswer) -> bool:
    """Whether the answer's own text must hold the reasoning, because the tokens that are left are too few for it.

    Some servers count reasoning apart and stream it as text like any other. Then more words came than tokens are left
    without it, and a word is a token at least; or, in scripts without spaces, as many token events as the whole count.
    Short of such a proof the server's word stands.
    """
    tokens, _ = answer.output_tokens()
    if tokens is None or not _lacks_reasoning(answer) or answer.ledger.counts_reasoning_beside:
        return False
    reasoning = answer.ledger.reasoning or 0
    left = max(0, tokens - reasoning)
    margin = max(1, round(STREAMED_MARGIN * left))
    words = sum(word[0].isalpha() for word in _text_of(answer).split())
    events = answer.output_events
    whole = abs(events - tokens) <= STREAMED_MARGIN * tokens
    return words > left + margin or (whole and events > left + margin)


def _lacks_reasoning(answer: StreamedAnswer) -> bool:
    """Whether reasoning is counted and none came under that name, nor under one that nobody knows."""
    shown = (Channel.REASONING, Channel.UNNAMED)
    return bool(answer.ledger.reasoning) and all(event.channel not in shown for event in answer.tokens)


def _text_of(answer: StreamedAnswer) -> str:
    """The answer of the first choice."""
    first = min(answer.choices, default=0)
    texts = [event.text for event in answer.tokens if event.channel is Channel.CONTENT and event.choice == first]
    return texts[-1] if texts and texts_grow(answer, Channel.CONTENT) else "".join(texts)


def allowance(limit: int, most: int = 1) -> int:
    """Tokens that a count may lie beside a limit: some servers count one too few, or the token that ends a turn."""
    return min(most, int(TOLERANCE * (limit - 1)))


def _is_beyond_limit(answer: StreamedAnswer, tokens: int, expected: Expected) -> bool:
    """Whether more tokens are counted than the request allowed, by far or though the stream kept to it."""
    if expected.max_tokens is None:
        return False
    limit, events = expected.max_tokens * expected.choices, answer.output_events
    several = 2 * events <= limit
    kept = 0 < events <= limit
    return tokens > BEYOND_LIMIT * limit + LARGEST_STEP or (
        kept and tokens - hidden_tokens(answer) > limit + allowance(limit, OVERSHOOT if several else 1)
    )


def _is_below_limit(answer: StreamedAnswer, tokens: int, expected: Expected) -> bool:
    """Whether fewer tokens are counted than the limit that the answer ended at, and the stream sides with the limit.

    An answer may be cut below its limit, by the context or by a limit of the server's own. Then no more token events
    come than are counted; only where they are nearer to the limit is the count the odd one out. An answer of forced
    length need not say what ended it where as many events came as were forced.
    """
    if answer.hidden_reasoning and answer.ledger.reasoning is None:
        return False
    events = answer.output_events + hidden_tokens(answer)
    limit = ended_at(answer, expected)
    forced = expected.output_tokens
    if limit is None and forced is not None and expected.choices == 1:
        limit = forced if abs(events - forced) <= TOLERANCE * forced else None
    return limit is not None and limit - tokens > allowance(limit) and 2 * events > tokens + limit


def _is_beyond_events(answer: StreamedAnswer, tokens: int) -> bool:
    """Whether more token events came than the counted tokens can have been split into."""
    return tokens > 0 and answer.output_events > LARGEST_SPLIT * tokens


def _is_beyond_text(answer: StreamedAnswer, tokens: int) -> bool:
    """Whether too little text came for the count.

    A streamed token holds a byte at least, beside the few that end a turn or open a tool call.
    """
    believed = tokens - hidden_tokens(answer) - LARGEST_STEP
    if not answer.tokens or answer.hidden_reasoning or believed <= len(answer.tokens):
        return False
    return believed > sum(len(event.text.encode()) for event in answer.tokens)


def is_borne_out(answer: StreamedAnswer, expected: Expected) -> bool:
    """Whether the last count agrees with the end of the answer: its limit, or the report that closes it.

    A count that runs along with the text may run ahead of it while a parser holds tokens back, and be set right later.
    """
    tokens, _ = answer.output_tokens()
    return tokens is not None and (ended_at(answer, expected) == tokens or answer.ledger.closed)


def jumps(answer: StreamedAnswer, expected: Expected) -> bool:
    """Whether a running count went back, or ran ahead of the text, and is believed all the same for its end."""
    tokens, _ = answer.output_tokens()
    if tokens is None or not is_borne_out(answer, expected):
        return False
    return answer.ledger.shrank or (_is_beyond_text(answer, tokens) and _are_tokens_held_back(answer, expected))


def _are_tokens_held_back(answer: StreamedAnswer, expected: Expected) -> bool:
    """Whether a running count shows in which few events the tokens without text are, and the end bears it out.

    A parser swallows marks and calls at a few places; a count that is wrong is wrong in every event. Tokens that were
    swallowed before the first text or behind the last one took their time outside of the span that TPOT divides.
    """
    tokens, _ = answer.output_tokens()
    steps = [(event.tokens, len(event.text.encode())) for event in answer.tokens]
    proven = [count for count, _ in steps if count is not None]
    if tokens is None or not is_borne_out(answer, expected) or len(proven) < len(steps):
        return False
    outside = (proven[0] - steps[0][1], tokens - sum(proven))
    ahead = sum(count > size for count, (_, size) in zip(proven, steps, strict=True))
    return max(outside) <= LARGEST_STEP and 2 * ahead < len(steps)


def _is_below_words(answer: StreamedAnswer, tokens: int, expected: Expected) -> bool:
    """Whether more token events begin a word than tokens are counted; never where the limit bears the count out.

    Tokens do not reach over the space between two words, and a token that is split into several events begins at most
    one word, so each event that begins one is a token of its own. Chunks cut inside words say nothing.
    """
    if tokens >= answer.output_events or ended_at(answer, expected) == tokens:
        return False
    before: dict[tuple[int, Channel], str] = {}
    begun = 0
    for event in answer.tokens:
        earlier = before.get((event.choice, event.channel), " ")
        rest = event.text.lstrip()
        begins = len(rest) < len(event.text) or earlier[-1:].isspace()
        begun += begins and rest[:1].isalpha()
        before[event.choice, event.channel] = event.text
    return begun > tokens
