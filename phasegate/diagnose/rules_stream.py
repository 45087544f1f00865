"""Rules about the tokens behind the first one, of requests sent one at a time.

Specific causes are looked for first; the general one, slow to stream, claims what is left.
"""

from __future__ import annotations

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.context_cost import context_cost, context_of
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Ask
from phasegate.diagnose.remedies import MORE_COMPUTE, REMEDIES
from phasegate.diagnose.rules_alone import STREAM, limit_words, material
from phasegate.diagnose.thresholds import (
    BANDWIDTH_BOUND,
    HANDOFF_GAPS,
    LEAST_ACCEPTANCE,
    MATERIAL_SECONDS,
    PAUSE_SHARE,
    STREAM_LIMIT,
    USUAL_ACCEPTANCE,
)
from phasegate.gate.levers import Lever

AFTER_THE_FIRST = "prefix caching or shorter prompts: they end with the first token"
CACHED_BUT_READ = "prefix caching: each step reads what is cached, too"

SHORTER_CONTEXT = Lever(
    "shorter prompts, less of the conversation kept", "change what the model is asked; reading the weights stays"
)
"""Of decode where TPOT is seen to grow with the context."""


def idle_drafts(case: Case) -> Explanation | None:
    """Tokens are guessed ahead and mostly thrown away."""
    known = [(ask.steps.acceptance, ask) for ask in case.now.asks if ask.steps is not None]
    told = [(share, ask) for share, ask in known if share is not None and ask.decode]
    if not told:
        return None
    share, ask = min(told, key=lambda one: one[0])
    if share >= LEAST_ACCEPTANCE:
        return None
    assert ask.decode is not None
    lost = (ask.decode - case.claimed(STREAM, ask.name)) * (1 - _yield(share) / _yield(USUAL_ACCEPTANCE))
    if not material(lost, ask.decode):
        return None
    assert ask.steps is not None
    steps = "" if ask.steps.tokens_per_step is None else f"; a step yields {ask.steps.tokens_per_step:.2f} tokens"
    return Explanation(
        "idle-drafts", "slow to stream", "speculative decoding whose guesses are thrown away", "decode", lost, ask.name,
        (
            f"{ask.steps.accepted:,} of {ask.steps.drafted:,} guessed tokens accepted "
            f"({format_percent(share, digits=0)}; from {format_percent(LEAST_ACCEPTANCE, digits=0)} on it pays){steps}",
            f"at the usual {format_percent(USUAL_ACCEPTANCE, digits=0)} a step would yield "
            f"{_yield(USUAL_ACCEPTANCE) / _yield(share):.1f} times as many",
        ),
        Confidence.SURE, REMEDIES["speculation"], (MORE_COMPUTE,), part=STREAM,
    )  # fmt: skip


def _yield(acceptance: float) -> float:
    """Most tokens that a step can yield at that acceptance, however many are guessed."""
    return 1 / (1 - acceptance)


def hand_off(case: Case) -> Explanation | None:
    """The second token waits for the KV cache to move from the server that read the prompt to the one that decodes."""
    told = [(_pause(ask), ask) for ask in case.now.asks]
    seconds, ask = max(told, key=lambda one: one[0], default=(0.0, None))
    if ask is None or not seconds:
        return None
    evidence = [
        f"the second token comes {format_seconds(ask.second_gap)} after the first; the usual gap is "
        f"{format_seconds(ask.usual_gap)}"
    ]
    if ask.longest_gap is not None:
        evidence.append(f"the longest gap behind it is {format_seconds(ask.longest_gap)} in the middle one of answers")
    if ask.server_handoff:
        evidence.append(f"the server's own move of the KV cache takes {format_seconds(ask.server_handoff)}")
    return Explanation(
        "hand-off", "a pause after the first token", "the hand-off from prefill to decode", "hand-off", seconds,
        ask.name, tuple(evidence), Confidence.SURE if ask.server_handoff else Confidence.LIKELY, REMEDIES["handoff"],
        ("a faster prefill or decode: neither moves the KV cache",), part=STREAM,
    )  # fmt: skip


def _pause(ask: Ask) -> float:
    """Seconds by which the second token is late; 0.0 where that is no more than gaps scatter, or not felt."""
    if ask.second_gap is None or not ask.usual_gap:
        return 0.0
    seconds = ask.second_gap - ask.usual_gap
    scatter = max(HANDOFF_GAPS * ask.usual_gap, ask.longest_gap or 0.0)
    felt = max(MATERIAL_SECONDS, PAUSE_SHARE * ((ask.ttft or 0.0) + ask.second_gap))
    return seconds if ask.second_gap > scatter and seconds >= felt else 0.0


def slow_stream(case: Case) -> Explanation | None:
    """The request that misses the limit of TPOT by most."""
    limits = case.now.limits
    limit, wanted = limit_words(limits.tpot, STREAM_LIMIT, limits.source)
    slow = [ask for ask in case.now.asks if ask.tpot is not None and ask.tpot > limit and ask.decode]
    if not slow:
        return None
    ask = max(slow, key=lambda one: (one.tpot or 0.0, one.decode or 0.0))
    assert ask.decode is not None
    rest = ask.decode - case.claimed(STREAM, ask.name)
    if not material(rest, ask.decode):
        return None
    evidence = [f"TPOT {format_seconds(ask.tpot)}; {wanted}"]
    if ask.output_tokens:
        evidence.append(f"{ask.output_tokens:.0f} tokens of answer take {format_seconds(ask.decode)} after the first")
    context = _context_words(case, ask)
    evidence += context
    bound, sure = case.now.machine.bandwidth, False
    if bound is not None:
        sure = bound >= BANDWIDTH_BOUND
        at = "at" if sure else "below"
        evidence.append(f"decode runs {at} the hardware's limit: {format_percent(bound, digits=0)} of its bandwidth")
    return Explanation(
        "slow-stream", "slow to stream", "each token reads all weights and the KV cache", "decode", rest, ask.name,
        tuple(evidence), Confidence.SURE if sure else Confidence.LIKELY, _levers(bool(context)),
        (
            *(() if bound is not None and not sure else (MORE_COMPUTE,)),
            CACHED_BUT_READ if context else AFTER_THE_FIRST,
        ),
        part=STREAM,
    )  # fmt: skip


def _context_words(case: Case, ask: Ask) -> list[str]:
    """What reading the context takes of its decode, where TPOT is seen to grow with it and that is worth naming."""
    cost = context_cost(case.now.asks)
    if cost is None or ask.decode is None or not ask.output_tokens:
        return []
    seconds = min(ask.decode, cost.seconds(context_of(ask) or 0.0, ask.output_tokens - 1))
    if not material(seconds, ask.decode):
        return []
    return [f"{cost.words()}: reading the context takes {format_seconds(seconds)} of it"]


def _levers(context: bool) -> tuple[Lever, ...]:
    fewer, *others = REMEDIES["decode"]
    return (fewer, SHORTER_CONTEXT, *others) if context else REMEDIES["decode"]


IDLE_DRAFTS = Rule(
    "idle-drafts",
    f"less than {format_percent(LEAST_ACCEPTANCE, digits=0)} of the guessed tokens are accepted",
    "decode",
    "the server's counts of guessed and accepted tokens",
    "speculation",
    idle_drafts,
)
HAND_OFF = Rule(
    "hand-off",
    f"the gap before the second token is over {HANDOFF_GAPS:g} usual gaps and longer than any other of its answer, "
    f"and {format_percent(PAUSE_SHARE, digits=0)} of the wait for that token",
    "hand-off",
    "gaps between tokens; the server's own time of the move excludes other causes",
    "handoff",
    hand_off,
)
SLOW_STREAM = Rule(
    "slow-stream",
    f"TPOT is over its limit (an objective, else {format_seconds(STREAM_LIMIT)}) after the causes above are taken off",
    "decode",
    "TPOT; the share of the memory bandwidth excludes other causes",
    "decode",
    slow_stream,
)
