"""Rules about requests that have the server to themselves: which part of one request takes its time.

Specific causes are looked for first; the two general ones, slow to start and slow to stream, claim what is left.
"""

from __future__ import annotations

from phasegate.gate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.gate.diagnose.remedies import FEWER_TOKENS, MARK, MORE_BANDWIDTH, MORE_COMPUTE, REMEDIES
from phasegate.gate.diagnose.situation import Ask, CacheCalls, Line, prefill_line
from phasegate.gate.diagnose.thresholds import (
    BANDWIDTH_BOUND,
    COMPUTE_BOUND,
    HANDOFF_GAPS,
    LEAST_ACCEPTANCE,
    MATERIAL_SECONDS,
    MATERIAL_SHARE,
    REASONING_SHARE,
    START_LIMIT,
    STREAM_LIMIT,
    USUAL_ACCEPTANCE,
)
from phasegate.stats.laws.margins import CACHE_SAVING_MIN
from phasegate.units import format_percent, format_rate, format_seconds

START, STREAM = "start", "stream"

AFTER_THE_FIRST = "prefix caching or shorter prompts: they end with the first token"


def material(seconds: float, whole: float) -> bool:
    """Whether a part of some time is worth naming."""
    return seconds >= max(MATERIAL_SECONDS, MATERIAL_SHARE * whole)


def limit_words(limit: float | None, default: float, source: str) -> tuple[float, str]:
    """The limit that applies, and what it is called."""
    if limit is not None:
        return limit, f"{format_seconds(limit)} wanted" + (f" ({source})" if source else "")
    return default, f"{format_seconds(default)} is what interactive use wants"


def slow_start(case: Case) -> Explanation | None:
    """The request that misses the limit of TTFT by most, and what of it reading the prompt explains."""
    limits = case.now.limits
    limit, wanted = limit_words(limits.ttft, START_LIMIT, limits.source)
    slow = [ask for ask in case.now.asks if ask.ttft is not None and ask.ttft > limit]
    if not slow:
        return None
    ask = max(slow, key=lambda one: one.ttft or 0.0)
    assert ask.ttft is not None
    rest = ask.ttft - case.claimed(START, ask.name)
    line = prefill_line(case.now.asks)
    seconds, how, sure = _reading(ask, rest, line)
    if not material(seconds, ask.ttft):
        return None
    evidence = [f"TTFT {format_seconds(ask.ttft)} for {_tokens(ask.prompt_tokens)}; {wanted}", *how]
    bound = case.now.machine.compute
    if bound is not None:
        at = "at" if bound >= COMPUTE_BOUND else "below"
        evidence.append(f"prefill runs {at} the hardware's limit: {format_percent(bound, digits=0)} of its peak FLOP/s")
    return Explanation(
        "slow-start", "slow to start", "reading the prompt", "prefill", seconds, ask.name, tuple(evidence),
        Confidence.SURE if sure else Confidence.LIKELY, REMEDIES["prefill"], (MORE_BANDWIDTH, FEWER_TOKENS), part=START,
    )  # fmt: skip


def _reading(ask: Ask, rest: float, line: Line | None) -> tuple[float, list[str], bool]:
    """Seconds of TTFT that prefill takes, the evidence, and whether other causes are excluded."""
    if ask.server_prefill is not None:
        return (
            min(rest, ask.server_prefill),
            [f"the server's own prefill takes {format_seconds(ask.server_prefill)}"],
            True,
        )
    if line is None or not ask.prompt_tokens:
        return rest, ["only one prompt length was measured, so a fixed part cannot be told apart"], False
    reading = max(0.0, min(rest, line.reading(ask.prompt_tokens)))
    rate = f", {format_rate(1 / line.per_token, 'tokens')}" if line.per_token > 0 else ""
    said = (
        f"{format_seconds(line.per_token * 1000)} per 1,000 prompt tokens{rate}: reading takes "
        f"{format_seconds(reading)}, a fixed part {format_seconds(max(0.0, line.fixed))}"
    )
    return reading, [said], True


def fixed_start(case: Case) -> Explanation | None:
    """TTFT that neither the prompt's length nor the server's own prefill explains: the way there and back."""
    line = prefill_line(case.now.asks)
    known = [(_fixed(ask, line), ask) for ask in case.now.asks if ask.ttft is not None]
    told = [(seconds, ask) for seconds, ask in known if seconds is not None]
    if not told:
        return None
    seconds, ask = max(told, key=lambda one: one[0])
    assert ask.ttft is not None
    limit, wanted = limit_words(case.now.limits.ttft, START_LIMIT, case.now.limits.source)
    if not material(seconds, ask.ttft) or ask.ttft <= limit:
        return None
    evidence = [f"TTFT {format_seconds(ask.ttft)}; {wanted}", f"{format_seconds(seconds)} of it {_whose(ask)}"]
    if ask.connect is not None:
        evidence.append(f"one connection set-up takes {format_seconds(ask.connect)}")
    return Explanation(
        "far-away", "slow to start", "the way to the server and back, outside its prefill", "network", seconds,
        ask.name, tuple(evidence), Confidence.SURE if ask.outside is not None else Confidence.LIKELY,
        REMEDIES["network"], ("a faster prefill: the server's own share is small",), part=START,
    )  # fmt: skip


def _fixed(ask: Ask, line: Line | None) -> float | None:
    if ask.outside is not None:
        return ask.outside
    return max(0.0, min(line.fixed, ask.ttft or 0.0)) if line is not None else None


def _whose(ask: Ask) -> str:
    if ask.outside is not None:
        return f"is not the server's own (its prefill takes {format_seconds(ask.server_prefill)})"
    return "does not depend on the prompt's length"


def uncached_prefix(case: Case) -> Explanation | None:
    """A beginning that was sent before is read again: the second call is no faster, and nothing came from a cache."""
    missed = [one for one in case.now.caches if _misses(one)]
    if not missed:
        return None
    one = max(missed, key=lambda calls: calls.shared_tokens)
    seconds = one.again * one.shared_tokens / one.prompt_tokens
    if not material(seconds, one.again):
        return None
    told = "the server does not report cached tokens"
    if one.cached_tokens is not None:
        told = f"the server reports {one.cached_tokens:.0f} of {one.prompt_tokens} tokens from its cache"
    return Explanation(
        "uncached-prefix", "slow to start", f"the same {one.shared_tokens:,} prompt tokens are read again each time",
        "prefill", seconds, one.name,
        (
            f"first call {format_seconds(one.first)}, the same beginning again {format_seconds(one.again)}: "
            f"saves {format_percent(max(0.0, one.saved), digits=0)} of TTFT",
            told,
            *([one.unmarked] if one.unmarked else []),
        ),
        Confidence.SURE if one.cached_tokens is not None else Confidence.LIKELY,
        (*([MARK] if one.unmarked else []), *REMEDIES["cache"]), (MORE_BANDWIDTH,), part=START,
    )  # fmt: skip


def _misses(one: CacheCalls) -> bool:
    return one.saved < CACHE_SAVING_MIN and (one.cached_tokens or 0) < one.shared_tokens / 2


def long_reasoning(case: Case) -> Explanation | None:
    """Most of the wait for the answer's first token is spent on tokens that the user does not read."""
    told = [(ask.hidden_thinking or ask.streamed_thinking, ask) for ask in case.now.asks]
    seconds, ask = max(told, key=lambda one: one[0], default=(0.0, None))
    if ask is None or not seconds:
        return None
    waited = ask.ttfo if ask.ttfo is not None else ask.ttft
    assert waited is not None
    limit, wanted = limit_words(case.now.limits.ttft, START_LIMIT, case.now.limits.source)
    if waited <= limit or seconds < REASONING_SHARE * waited:
        return None
    count = f"{ask.reasoning_tokens:.0f} reasoning tokens" if ask.reasoning_tokens else "reasoning tokens"
    return Explanation(
        "long-reasoning", "slow to answer", f"{count} before the answer", "decode", seconds, ask.name,
        (
            f"the answer's first token comes after {format_seconds(waited)}; {wanted}",
            f"{count} take {format_seconds(seconds)} of it ({format_percent(seconds / waited, digits=0)})",
        ),
        Confidence.SURE if ask.reasoning_tokens else Confidence.LIKELY, REMEDIES["reasoning"],
        ("a faster prefill: the prompt is read before the reasoning begins",),
        part=START if ask.hidden_thinking else STREAM,
    )  # fmt: skip


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
    lost = ask.decode * (1 - _yield(share) / _yield(USUAL_ACCEPTANCE))
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
    told = [(ask.second_gap - ask.usual_gap, ask) for ask in case.now.asks if ask.second_gap and ask.usual_gap]
    seconds, ask = max(told, key=lambda one: one[0], default=(0.0, None))
    if ask is None or ask.second_gap is None or ask.usual_gap is None:
        return None
    if ask.second_gap < HANDOFF_GAPS * ask.usual_gap or seconds < MATERIAL_SECONDS:
        return None
    return Explanation(
        "hand-off", "a pause after the first token", "the hand-off from prefill to decode", "hand-off", seconds,
        ask.name,
        (
            f"the second token comes {format_seconds(ask.second_gap)} after the first; the usual gap is "
            f"{format_seconds(ask.usual_gap)}",
        ),
        Confidence.LIKELY, REMEDIES["handoff"], ("a faster prefill or decode: neither moves the KV cache",),
        part=STREAM,
    )  # fmt: skip


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
    bound, sure = case.now.machine.bandwidth, False
    if bound is not None:
        sure = bound >= BANDWIDTH_BOUND
        at = "at" if sure else "below"
        evidence.append(f"decode runs {at} the hardware's limit: {format_percent(bound, digits=0)} of its bandwidth")
    return Explanation(
        "slow-stream", "slow to stream", "each token reads all weights and the KV cache", "decode", rest, ask.name,
        tuple(evidence), Confidence.SURE if sure else Confidence.LIKELY, REMEDIES["decode"],
        (*(() if bound is not None and not sure else (MORE_COMPUTE,)), AFTER_THE_FIRST), part=STREAM,
    )  # fmt: skip


def _tokens(count: int | None) -> str:
    return "a prompt of unknown length" if count is None else f"{count:,} prompt tokens"


UNCACHED = Rule(
    "uncached-prefix",
    f"a second call with the same beginning saves less than {format_percent(CACHE_SAVING_MIN, digits=0)} of TTFT",
    "prefill",
    "two calls that share a beginning",
    "cache",
    uncached_prefix,
)
REASONING = Rule(
    "long-reasoning",
    "the wait for the answer's first token is over its limit, and at least "
    f"{format_percent(REASONING_SHARE, digits=0)} of it is reasoning",
    "decode",
    "TTFT and the first answer token, or the server's count of reasoning tokens",
    "reasoning",
    long_reasoning,
)
FAR_AWAY = Rule(
    "far-away",
    "TTFT is over its limit, and a part that neither the prompt's length nor the server's prefill explains is at least "
    f"{format_percent(MATERIAL_SHARE, digits=0)} of it",
    "network",
    "the server's own prefill time, or several prompt lengths",
    "network",
    fixed_start,
)
SLOW_START = Rule(
    "slow-start",
    f"TTFT is over its limit (an objective, else {format_seconds(START_LIMIT)}) after the causes above are taken off",
    "prefill",
    "TTFT; the server's prefill time or several prompt lengths exclude other causes",
    "prefill",
    slow_start,
)
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
    f"the gap before the second token is at least {HANDOFF_GAPS:g} usual gaps",
    "hand-off",
    "gaps between tokens",
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
