"""Rules about requests sent one at a time: what takes the time to their first token, and to their answer's first.

Specific causes are looked for first; the general one, slow to start, claims what is left. `rules_stream` has those
about the tokens behind the first one.
"""

from __future__ import annotations

from phasegate.core.units import format_percent, format_rate, format_seconds
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Ask, CacheCalls
from phasegate.diagnose.prefill_line import Line, prefill_line
from phasegate.diagnose.remedies import FEWER_TOKENS, MARK, MORE_BANDWIDTH, REMEDIES
from phasegate.diagnose.thresholds import (
    COMPUTE_BOUND,
    MATERIAL_SECONDS,
    MATERIAL_SHARE,
    REASONING_SHARE,
    START_LIMIT,
)
from phasegate.stats.laws.margins import CACHE_SAVING_MIN

START, STREAM = "start", "stream"


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
    line = prefill_line(case.now.asks)
    seconds, how, sure = _reading(ask, _unclaimed(case, ask), line)
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


def _unclaimed(case: Case, ask: Ask) -> float:
    """Seconds of TTFT that nothing explains yet: without unseen reasoning and a told wait, whoever named them."""
    reading = (one for one in case.found if (one.part, one.of, one.change) == (START, ask.name, False))
    # These two are taken off TTFT in any case, also where their rules found another request worse.
    claimed = sum(one.seconds for one in reading if one.rule not in (REASONING.name, SERVER_QUEUE.name))
    return max(0.0, (ask.own_start or 0.0) - claimed)


def _reading(ask: Ask, rest: float, line: Line | None) -> tuple[float, list[str], bool]:
    """Seconds of TTFT that prefill takes, the evidence, and whether other causes are excluded."""
    if ask.server_prefill is not None:
        return (
            min(rest, ask.server_prefill),
            [f"the server's own prefill takes {format_seconds(ask.server_prefill)}"],
            True,
        )
    if ask.crowded and line is None:
        return 0.0, [], False  # The rest may be waiting as well.
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
    known = [(_fixed(case, ask, line), ask) for ask in case.now.asks if ask.ttft is not None and not ask.crowded]
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


def _fixed(case: Case, ask: Ask, line: Line | None) -> float | None:
    """Seconds that the way takes at most: what nothing else explains, and without the first token's own step."""
    rest = _unclaimed(case, ask)
    if ask.outside is not None:
        return min(ask.outside, rest)
    return max(0.0, min(line.fixed - (ask.tpot or 0.0), rest)) if line is not None else None


def server_queue(case: Case) -> Explanation | None:
    """A request waits at the server by the server's own clock, though nobody here had sent another."""
    limit, wanted = limit_words(case.now.limits.ttft, START_LIMIT, case.now.limits.source)
    slow = [ask for ask in case.now.asks if ask.ttft is not None and ask.ttft > limit and ask.server_queue]
    if not slow:
        return None
    ask = max(slow, key=lambda one: one.server_queue or 0.0)
    seconds = ask.server_queue or 0.0
    if not material(seconds, ask.ttft or 0.0):
        return None
    evidence = [
        f"TTFT {format_seconds(ask.ttft)}; {wanted}",
        f"the server's own queue takes {format_seconds(seconds)} of it "
        f"({format_percent(seconds / (ask.ttft or 1.0), digits=0)}), though one request was sent at a time",
        *others_words(ask),
    ]
    return Explanation(
        "server-queue", "slow to start", "waiting at the server: other traffic on it, or a wait for company in a batch",
        "queueing", seconds, ask.name, tuple(evidence), Confidence.SURE if ask.others is None else Confidence.LIKELY,
        REMEDIES["server-queue"], ("a faster prefill or shorter prompts: the wait is for others",), part=START,
    )  # fmt: skip


def others_words(ask: Ask) -> list[str]:
    """What the server counted of others; nothing where it counted none."""
    if ask.others is None:
        return []
    return [f"the server counted {ask.others:,.0f} requests more than were sent: its mean wait is everybody's"]


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
    seconds = _read_again(case, one)
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
            *_hit_rate(one),
            *([one.unmarked] if one.unmarked else []),
        ),
        Confidence.SURE if one.cached_tokens is not None or one.hit_rate == 0 else Confidence.LIKELY,
        (*([MARK] if one.unmarked else []), *REMEDIES["cache"]), (MORE_BANDWIDTH,), part=START,
    )  # fmt: skip


def _read_again(case: Case, one: CacheCalls) -> float:
    """Seconds that reading the shared tokens takes: their share of TTFT without what every request pays."""
    line, ask = prefill_line(case.now.asks), case.now.ask(one.name)
    fixed = max(0.0, line.fixed) if line is not None else 0.0
    waited = (ask.server_queue or 0.0) if ask is not None else 0.0
    return max(0.0, one.again - fixed - waited) * one.shared_tokens / one.prompt_tokens


def _hit_rate(one: CacheCalls) -> list[str]:
    if one.hit_rate is None:
        return []
    rate = format_percent(one.hit_rate, digits=0)
    return [f"the server's own count: {rate} of all prompt tokens of the workload came from its prefix cache"]


def _misses(one: CacheCalls) -> bool:
    return one.saved < CACHE_SAVING_MIN and (one.cached_tokens or 0) < one.shared_tokens / 2


def long_reasoning(case: Case) -> Explanation | None:
    """Most of the wait for the answer's first token is spent on tokens that the user does not read."""
    told = [(ask.hidden_thinking or _streamed(case, ask), ask) for ask in case.now.asks]
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


def _streamed(case: Case, ask: Ask) -> float:
    """Seconds of reasoning that was sent, without a pause in it that has another cause."""
    return max(0.0, ask.streamed_thinking - case.claimed(STREAM, ask.name))


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
SERVER_QUEUE = Rule(
    "server-queue",
    "TTFT is over its limit, and the server's own queue is at least "
    f"{format_percent(MATERIAL_SHARE, digits=0)} of it though one request was sent at a time",
    "queueing",
    "the server's own queue time",
    "server-queue",
    server_queue,
)
FAR_AWAY = Rule(
    "far-away",
    "TTFT is over its limit, and a part that neither the prompt's length nor the server's own times explain is at "
    f"least {format_percent(MATERIAL_SHARE, digits=0)} of it",
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
