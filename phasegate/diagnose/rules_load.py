"""Rules about several users at a time: waiting for a turn, throughput that does not grow, long prompts in the way.

Throughput that does not grow has two causes, and TPOT tells them apart. Served one after another, each stream runs as
fast as alone and the others wait. Answered together, with steps that cost in proportion to their streams, every stream
slows down: there is nothing left to share, and more slots change nothing. A step of its own for every stream would look
the same to the client; the server's count of streams in a step tells them apart where it has one.
"""

from __future__ import annotations

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Level
from phasegate.diagnose.remedies import MORE_COMPUTE, REMEDIES
from phasegate.diagnose.rules_alone import material
from phasegate.diagnose.thresholds import (
    COMPUTE_BOUND,
    MATERIAL_SECONDS,
    QUEUE_GROWTH,
    ROOM_TO_SHARE,
    STALL_GAPS,
    STALL_SHARE,
    TOGETHER_STREAMS,
    WAITING_SHARE,
)
from phasegate.stats.laws.margins import AMORTISE_MIN


def waited(single: Level, now: Level) -> tuple[float, str, Confidence] | None:
    """Seconds of TTFT at a level that are waiting for a turn, how that is known, and how well.

    By the server's own queue time where it tells one; else by its prefill time; else by decode's slowdown, since both
    phases share the server's steps.
    """
    if now.ttft is None or single.ttft is None:
        return None
    if now.server_queue is not None:
        return now.server_queue, f"the server's own queue takes {format_seconds(now.server_queue)}", Confidence.SURE
    if now.server_prefill is not None:
        outside = max(0.0, single.ttft - (single.server_prefill or 0.0))
        seconds = max(0.0, now.ttft - now.server_prefill - outside)
        return seconds, f"the server's own prefill takes {format_seconds(now.server_prefill)}", Confidence.SURE
    slowdown = max(1.0, _steps_slower(single, now))
    explained = single.ttft * slowdown
    how = f"steps got {slowdown:.2f} times as long, which explains {format_seconds(explained)}"
    return max(0.0, now.ttft - explained), how, Confidence.LIKELY


def _steps_slower(single: Level, now: Level) -> float:
    """How many times as long the usual step takes; by TPOT, which other prompts' stalls are a part of, if need be."""
    if single.usual_gap and now.usual_gap:
        return now.usual_gap / single.usual_gap
    return now.tpot / single.tpot if single.tpot and now.tpot else 1.0


def queueing(case: Case) -> Explanation | None:
    """Requests wait for a turn although the server does get more done with more users."""
    found = longest_wait(case)
    if found is None or _flat(case):
        return None
    single, top, seconds, how, confidence = found
    assert top.ttft is not None
    if case.named("kv-memory-full", f"{top.users:g} users"):
        return None  # What they wait for is known.
    cause, levers, vain = _queue_for_what(single, top)
    return Explanation(
        "queueing", "slow to start under load", cause, "queueing", seconds, f"{top.users:g} users",
        (
            f"TTFT {format_seconds(top.ttft)} with {top.users:g} users, {format_seconds(single.ttft)} with "
            f"{single.users:g}; {how}",
            f"{format_percent(seconds / top.ttft, digits=0)} of TTFT is waiting",
            *_counted(top),
        ),
        confidence, REMEDIES[levers], (vain,),
    )  # fmt: skip


def _counted(top: Level) -> list[str]:
    """How many waited and ran, by the server's own times; nothing where it tells none."""
    if top.waiting is None:
        return []
    running = "" if top.running is None else f", {top.running:.1f} were in work"
    return [f"the server's own times: {top.waiting:.1f} requests waited at a moment on average{running}"]


def _queue_for_what(single: Level, top: Level) -> tuple[str, str, str]:
    """The cause, its levers, and what does not help: a place in the batch, or the prompts of others.

    Where even the prompts of all users, one after another, would be read sooner, requests wait for answers to end.
    """
    prompts = top.users * (single.ttft or 0.0)
    if (top.ttft or 0.0) > prompts:
        said = f"all users' prompts one after another would take only {format_seconds(prompts)}"
        return "waiting for a place in the batch", "queueing", f"prompt caching or shorter prompts: {said}"
    return "waiting while other prompts are read", "prefill-queue", "more slots: the prompts still take turns"


def longest_wait(case: Case) -> tuple[Level, Level, float, str, Confidence] | None:
    """The lowest level, the one at which most waiting is proven, the seconds, how that is known."""
    levels = case.now.levels
    best = None
    for level in levels[1:]:
        told = waited(levels[0], level)
        grown = (level.ttft or 0.0) - (levels[0].ttft or 0.0)
        if told is None or grown < QUEUE_GROWTH * (levels[0].ttft or 0.0) or told[0] < WAITING_SHARE * grown:
            continue
        if material(told[0], level.total or level.ttft or 0.0) and (best is None or told[0] > best[2]):
            best = (levels[0], level, *told)
    return best


def _flat(case: Case) -> bool:
    """Whether throughput does not grow with users although there is something to share.

    Prompts are read at the same cost however many there are; only decode is shared. Where a lone request is nearly all
    prefill, throughput cannot grow, and it says nothing about batching.
    """
    levels = [level for level in case.now.levels if level.token_rate]
    rates = [level.token_rate or 0.0 for level in levels]
    if len(rates) < 2 or max(rates[1:]) >= AMORTISE_MIN * rates[0]:
        return False
    alone = levels[0]
    return not (alone.total and alone.ttft) or alone.total / alone.ttft >= ROOM_TO_SHARE


def _flat_levels(case: Case) -> tuple[Level, Level] | None:
    """The lowest and the highest level where throughput does not grow; None where it does or was not measured."""
    levels = [level for level in case.now.levels if level.token_rate]
    return (levels[0], levels[-1]) if len(levels) > 1 and _flat(case) else None


def _slowdown(first: Level, top: Level) -> float | None:
    """How many times as long each token of a stream takes with many users; None where that is not known."""
    return top.tpot / first.tpot if first.tpot and top.tpot else None


def _together(first: Level, top: Level) -> bool:
    """Whether streams are seen to decode at the same time: several at a time, each slower for the others."""
    slowdown = _slowdown(first, top)
    return slowdown is not None and slowdown >= AMORTISE_MIN and (top.decoding or 0.0) >= TOGETHER_STREAMS


def _steps_shared(first: Level, top: Level) -> bool | None:
    """Whether streams share the engine's steps by its own count; None where that is not told, or is neither.

    In units of the lone user's figure, where there is one: it is below 1 where steps that only read prompts count, and
    above where a step yields several tokens of one stream.
    """
    if top.streams_per_step is None or top.users <= 1:
        return None
    alone = first.streams_per_step if first.users == 1 and first.streams_per_step else 1.0
    times = top.streams_per_step / alone
    if times >= TOGETHER_STREAMS:
        return True
    return False if times < AMORTISE_MIN else None


def _answered_together(first: Level, top: Level) -> bool:
    """By the server's count where it decides, else by the client's clock."""
    shared = _steps_shared(first, top)
    return _together(first, top) if shared is None else shared


def _told(first: Level, top: Level) -> list[str]:
    """The server's count in words; nothing where it does not tell."""
    if top.streams_per_step is None:
        return []
    alone = "" if first.streams_per_step is None else f", {first.streams_per_step:.1f} with {first.users:g}"
    return [f"the server's own count: {top.streams_per_step:.1f} streams in a step with {top.users:g} users{alone}"]


def _rates(first: Level, top: Level) -> tuple[list[str], float]:
    """Throughput and TTFT of both levels in words, and the seconds by which TTFT grew."""
    old, new = first.token_rate or 0.0, top.token_rate or 0.0
    evidence = [
        f"{first.users:g} user gets {old:,.0f} tokens/s, {top.users:g} together {new:,.0f} "
        f"(x {new / old:.2f}; x {AMORTISE_MIN:g} at least shows steps that are shared)"
    ]
    if first.ttft is None or top.ttft is None:
        return evidence, 0.0
    evidence.append(f"TTFT grows from {format_seconds(first.ttft)} to {format_seconds(top.ttft)} meanwhile")
    return evidence, max(0.0, top.ttft - first.ttft)


def batch_cost(case: Case) -> Explanation | None:
    """Several users are answered together, and get hardly more tokens a second than one alone."""
    found = _flat_levels(case)
    if found is None or not _answered_together(*found):
        return None
    first, top = found
    slowdown, counted = _slowdown(first, top), _steps_shared(first, top)
    if slowdown is not None and slowdown < AMORTISE_MIN:
        return None
    evidence, seconds = _rates(first, top)
    if slowdown is not None:
        evidence.append(
            f"{top.decoding or 0.0:.1f} streams decode at a time on average, and TPOT x {slowdown:.2f}: each of them "
            "slows down the others"
        )
    evidence += _told(first, top)
    share = case.now.machine.decode_compute
    if share is not None and share >= COMPUTE_BOUND:
        reached = format_percent(share, digits=0)
        evidence.append(f"one stream alone takes {reached} of the peak FLOP/s already, about what kernels reach")
    elif counted is None:
        evidence.append(
            "an engine that gives each stream a step of its own would look the same; its own count of streams in a "
            "step would tell"
        )
    return Explanation(
        "batch-cost", "low throughput with many users",
        "answered together, but each stream adds its own cost: arithmetic is the limit", "throughput", seconds,
        f"{top.users:g} users", tuple(evidence), Confidence.SURE if counted else Confidence.LIKELY,
        REMEDIES["batch-cost"],
        (
            "more slots (continuous batching): several streams are in work already",
            "speculative decoding: it trades reading for arithmetic",
        ),
    )  # fmt: skip


def no_batching(case: Case) -> Explanation | None:
    """Several users together get hardly more tokens a second than one alone, one after another."""
    found = _flat_levels(case)
    if found is None or _answered_together(*found):
        return None
    first, top = found
    evidence, seconds = _rates(first, top)
    slowdown, apart = _slowdown(first, top), _steps_shared(first, top) is False
    alone = slowdown is not None and slowdown < AMORTISE_MIN
    if slowdown is not None:
        how = "requests are served one after another" if alone else "streams slow each other down without sharing steps"
        evidence.append(f"TPOT x {slowdown:.2f}, {top.decoding or 0.0:.1f} streams decode at a time on average: {how}")
    evidence += _told(first, top)
    # Both clocks must agree: several front ends that count steps each for itself make the server's figure too low.
    sure = alone or (apart and not _together(first, top))
    return Explanation(
        "no-batching", "low throughput with many users", "requests are not answered together", "throughput", seconds,
        f"{top.users:g} users", tuple(evidence), Confidence.SURE if sure else Confidence.LIKELY,
        REMEDIES["batching"], (MORE_COMPUTE, "speculative decoding: it speeds up one stream"),
    )  # fmt: skip


def stalled_streams(case: Case) -> Explanation | None:
    """A long prompt is read in one piece while running streams stand still."""
    one = case.now.stall
    if one is None or one.stall < STALL_SHARE * one.alone:
        return None
    if one.stall < STALL_GAPS * one.usual_gap or one.stall - one.usual_gap < MATERIAL_SECONDS:
        return None
    size = "a long prompt" if one.prompt_tokens is None else f"a prompt of {one.prompt_tokens:,} tokens"
    return Explanation(
        "stalled-streams", "streams stand still now and then", f"{size} is read in one piece", "prefill",
        one.stall - one.usual_gap, "running streams",
        (
            f"{size} stalls running streams for {format_seconds(one.stall)}; their usual gap is "
            f"{format_seconds(one.usual_gap)}",
            f"its own prefill takes {format_seconds(one.alone)}, so the stall is "
            f"{format_percent(one.stall / one.alone, digits=0)} of it",
        ),
        Confidence.SURE, REMEDIES["stalls"], ("a faster decode: the streams wait for a prefill",),
    )  # fmt: skip


STALLED = Rule(
    "stalled-streams",
    f"a long prompt stalls running streams for at least {format_percent(STALL_SHARE, digits=0)} of its own prefill and "
    f"{STALL_GAPS:g} usual gaps",
    "prefill",
    "a long prompt sent among running streams",
    "stalls",
    stalled_streams,
)
BATCH_COST = Rule(
    "batch-cost",
    f"no number of users gets {AMORTISE_MIN:g} times the tokens a second of one, though at least {TOGETHER_STREAMS:g} "
    f"streams decode at a time and TPOT grew to {AMORTISE_MIN:g} times or more; where the server counts streams in a "
    f"step, at least {TOGETHER_STREAMS:g} times a lone user's",
    "throughput",
    "two levels of load or more, with TPOT; the server's count of streams in a step excludes other causes",
    "batch-cost",
    batch_cost,
)
NO_BATCHING = Rule(
    "no-batching",
    f"no number of users gets {AMORTISE_MIN:g} times the tokens a second of one, though a lone request takes at least "
    f"{ROOM_TO_SHARE:g} times its TTFT, and streams are not seen to decode at a time, or have a step each by the "
    "server's count",
    "throughput",
    "two levels of load or more; TPOT and the server's count of streams in a step exclude streams that are answered "
    "together",
    "batching",
    no_batching,
)
QUEUEING = Rule(
    "queueing",
    "TTFT at least doubles under load while throughput grows, and at least "
    f"{format_percent(WAITING_SHARE, digits=0)} of what was added is waiting for a turn, and a fifth of the request",
    "queueing",
    "two levels of load or more; the server's queue or prefill time excludes other causes",
    "queueing",
    queueing,
)
