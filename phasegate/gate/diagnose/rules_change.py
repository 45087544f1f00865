"""Rules about two sittings: what changed, and which phase it fell on.

Kinds of request that both sittings measured are compared by name. Whether a change is more than noise is for the gate
to decide; here it is only told where a change comes from. Where a gate has compared the two (`proof.Proof`), only what
it proved is called slower, in the phase and at the cell in which it was proven.
"""

from __future__ import annotations

from phasegate.gate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.gate.diagnose.pairs import grew, lines_of, moved, pairs, slower, started_slower, sure, ttft_words, worst
from phasegate.gate.diagnose.remedies import FEWER_TOKENS, MORE_BANDWIDTH, MORE_COMPUTE, REMEDIES
from phasegate.gate.diagnose.situation import Line, Repeats
from phasegate.gate.diagnose.thresholds import (
    CHANGED,
    HIT_SHARE,
    LEAST_ACCEPTANCE,
    MATERIAL_SECONDS,
    MATERIAL_SHARE,
    MISS_SHARE,
    UNCHANGED,
)
from phasegate.stats.laws.margins import CACHE_SAVING_MIN
from phasegate.units import format_percent, format_seconds


def _same(new: float | None, old: float | None) -> bool:
    return bool(new and old) and abs((new or 0.0) / (old or 1.0) - 1) <= UNCHANGED


def hop_added(case: Case) -> Explanation | None:
    """TTFT grew by the same time at every prompt length, or outside the server: the way got longer."""
    grown = started_slower(case)
    if not grown:
        return None
    pair, proven = worst(case, grown, "ttft", lambda one: one.start)
    total, outside = pair.start, pair.grown(lambda ask: ask.outside)
    said = ttft_words(pair, proven)
    lines, confidence, seconds = lines_of(case), Confidence.LIKELY, 0.0
    if pair.now.outside is not None and pair.before.outside is not None:
        # What lies outside the server's prefill has the first token's step in it, as TTFT has.
        seconds, confidence = outside - pair.step, sure(case, proven)
        said.append(
            f"the server's own prefill {format_seconds(pair.before.server_prefill)} -> "
            f"{format_seconds(pair.now.server_prefill)}; what lies outside it grew by {format_seconds(outside)}"
        )
    elif lines is not None:
        seconds = lines[1].fixed - lines[0].fixed - pair.step
        said.append(f"{format_seconds(seconds)} were added at every prompt length; {_slopes(*lines)}")
    if seconds < max(MATERIAL_SECONDS, (1 - MATERIAL_SHARE) * total):
        return None
    if pair.now.connect is not None and pair.before.connect is not None:
        said.append(
            f"connection set-up {format_seconds(pair.before.connect)} -> {format_seconds(pair.now.connect)} "
            "(it does not see a hop behind the first one)"
        )
    return Explanation(
        "hop-added", "slower to start than before", "a longer way to the engine: a hop, a gateway, a region", "network",
        seconds, pair.now.name, tuple(said), confidence, REMEDIES["network"],
        ("a faster prefill or shorter prompts: the same time is added to every prompt",), change=True,
    )  # fmt: skip


def _slopes(old: Line, new: Line) -> str:
    return f"per 1,000 tokens {format_seconds(old.per_token * 1000)} -> {format_seconds(new.per_token * 1000)}"


def cache_reset(case: Case) -> Explanation | None:
    """Shared beginnings were cached before, are not at first now, and are again later: the cache was emptied."""
    old, new = _repeats(case)
    if old is None or new is None or not slower(case, new.early_ttft, old.early_ttft):
        return None
    if not (_hits(old.early_cached, old.early_ttft, new.early_ttft) and _warms_up(new)):
        return None
    return _cache_change(
        "cache-reset", "the cache of shared beginnings was emptied (a deploy, a restart)", old, new, "reset",
        f"later requests take {format_seconds(new.later_ttft)} again",
    )  # fmt: skip


def cache_lost(case: Case) -> Explanation | None:
    """Shared beginnings were cached before, and now they are not even on later requests."""
    old, new = _repeats(case)
    if old is None or new is None or not slower(case, new.later_ttft, old.later_ttft) or _warms_up(new):
        return None
    return _cache_change(
        "cache-lost", "shared beginnings are no longer cached", old, new, "cache",
        f"later requests take {format_seconds(new.later_ttft)} as well",
    )  # fmt: skip


def _repeats(case: Case) -> tuple[Repeats | None, Repeats | None]:
    return (case.before.repeats if case.before is not None else None), case.now.repeats


def _hits(share: float | None, fast: float, slow: float) -> bool:
    """Whether a part of the traffic was served from the cache: by the server's count, else by its time."""
    return share >= HIT_SHARE if share is not None else fast <= slow * (1 - CACHE_SAVING_MIN)


def _warms_up(one: Repeats) -> bool:
    """Whether first requests miss and later ones hit."""
    missed = one.early_cached is None or one.early_cached < MISS_SHARE
    return missed and _hits(one.later_cached, one.later_ttft, one.early_ttft)


def _cache_change(rule: str, cause: str, old: Repeats, new: Repeats, levers: str, later: str) -> Explanation:
    shares = ""
    if old.early_cached is not None and new.early_cached is not None:
        shares = (
            f"; from the cache: {format_percent(old.early_cached, digits=0)} of the prompt before, "
            f"{format_percent(new.early_cached, digits=0)} now"
        )
    return Explanation(
        rule, "slower to start than before", cause, "prefill", new.early_ttft - old.early_ttft, "shared beginnings",
        (
            f"the first request of each shared beginning ({new.shared_tokens:,} tokens) takes "
            f"{format_seconds(new.early_ttft)}, {format_seconds(old.early_ttft)} before{shares}",
            later,
        ),
        Confidence.SURE if shares else Confidence.LIKELY, REMEDIES[levers], (MORE_BANDWIDTH, FEWER_TOKENS), change=True,
    )  # fmt: skip


def prefill_slower(case: Case) -> Explanation | None:
    """TTFT grew, and neither the way nor a cache nor the first token's own step explains it."""
    grown = started_slower(case)
    if not grown or any(one.rule == "hop-added" for one in case.found):
        return None
    pair, proven = worst(case, grown, "ttft", lambda one: one.start)
    said = ttft_words(pair, proven)
    lines = lines_of(case)
    if lines is not None:
        said.append(_slopes(*lines))
    told = pair.grown(lambda ask: ask.server_prefill)
    if told > 0:
        said.append(f"the server's own prefill grew by {format_seconds(told)}")
    excluded = told > 0 or lines is not None
    return Explanation(
        "prefill-slower", "slower to start than before", "reading the prompt got slower", "prefill", pair.start,
        pair.now.name, tuple(said), sure(case, proven) if excluded else Confidence.LIKELY, REMEDIES["prefill"],
        (MORE_BANDWIDTH,), change=True,
    )  # fmt: skip


def drafts_rejected(case: Case) -> Explanation | None:
    """Steps yield fewer tokens than before, and tokens take longer for it."""
    for pair in pairs(case):
        old, new = pair.before.steps, pair.now.steps
        if old is None or new is None or not grew(case, pair, "tpot", lambda ask: ask.decode):
            continue
        fewer = _fewer_tokens(old.tokens_per_step, new.tokens_per_step)
        rejected = old.acceptance is not None and new.acceptance is not None and _fell(old.acceptance, new.acceptance)
        if not (fewer or rejected):
            continue
        said = [f"TPOT {format_seconds(pair.before.tpot)} -> {format_seconds(pair.now.tpot)}"]
        if old.tokens_per_step is not None and new.tokens_per_step is not None:
            said.append(f"a step yields {new.tokens_per_step:.2f} tokens, {old.tokens_per_step:.2f} before")
        if old.acceptance is not None and new.acceptance is not None:
            said.append(
                f"{format_percent(new.acceptance, digits=0)} of the guessed tokens are accepted, "
                f"{format_percent(old.acceptance, digits=0)} before"
            )
        return Explanation(
            "drafts-rejected", "slower to stream than before", "speculative decoding no longer guesses right", "decode",
            pair.grown(lambda ask: ask.decode), pair.now.name, tuple(said),
            Confidence.SURE if rejected else Confidence.LIKELY, REMEDIES["speculation"],
            (MORE_COMPUTE, "prefix caching: it ends with the first token"), change=True,
        )  # fmt: skip
    return None


def _fewer_tokens(old: float | None, new: float | None) -> bool:
    return old is not None and new is not None and new <= old * (1 - CHANGED)


def _fell(old: float, new: float) -> bool:
    return new < LEAST_ACCEPTANCE <= old or new <= old * (1 - MATERIAL_SHARE)


def decode_slower(case: Case) -> Explanation | None:
    """TPOT grew, and drafts do not explain it."""
    grown = [pair for pair in pairs(case) if grew(case, pair, "tpot", lambda ask: ask.decode)]
    if case.proof is None:
        # The time of an answer that got longer is not a slower decode.
        grown = [pair for pair in grown if (pair.now.tpot or 0.0) >= (pair.before.tpot or 0.0) * (1 + case.least)]
    if not grown or any(one.rule == "drafts-rejected" for one in case.found):
        return None
    pair, proven = worst(case, grown, "tpot", lambda one: one.grown(lambda ask: ask.decode))
    return Explanation(
        "decode-slower", "slower to stream than before", "each token takes longer", "decode",
        pair.grown(lambda ask: ask.decode), pair.now.name, (moved("TPOT", pair.before.tpot, pair.now.tpot, proven),),
        Confidence.LIKELY if proven is None else sure(case, proven), REMEDIES["decode"], (MORE_COMPUTE,), change=True,
    )  # fmt: skip


def compute_spent_in_vain(case: Case) -> Explanation | None:
    """Prefill got faster and decode did not: more FLOP/s without more bandwidth."""
    both = [pair for pair in pairs(case) if pair.now.decode and pair.before.ttft and pair.now.ttft]
    lines = lines_of(case)
    if not both or lines is None or lines[0].per_token <= 0:
        return None
    ratio = lines[1].per_token / lines[0].per_token
    # The longest answer: where decode matters most.
    pair = max(both, key=lambda one: one.now.decode or 0.0)
    if ratio > 1 - MATERIAL_SHARE or not _same(pair.now.tpot, pair.before.tpot):
        return None
    decode, total = pair.now.decode or 0.0, (pair.now.decode or 0.0) + (pair.now.ttft or 0.0)
    if decode < MATERIAL_SHARE * total:
        return None
    return Explanation(
        "compute-in-vain", "faster to start, no faster to stream", "decode waits for memory, not for arithmetic",
        "decode", decode, pair.now.name,
        (
            f"prefill takes {ratio:.2f} times as long as before ({_slopes(*lines)})",
            f"TPOT {format_seconds(pair.before.tpot)} -> {format_seconds(pair.now.tpot)}: not moved",
            f"decode takes {format_percent(decode / total, digits=0)} of the request",
        ),
        Confidence.SURE, REMEDIES["bandwidth"], (MORE_COMPUTE,), change=True,
    )  # fmt: skip


HOP_ADDED = Rule(
    "hop-added",
    f"TTFT grew by {format_percent(CHANGED, digits=0)} or more, and at least "
    f"{format_percent(1 - MATERIAL_SHARE, digits=0)} of it at every prompt length alike, or outside the server's own "
    "prefill",
    "network",
    "both sittings: the server's prefill time, or several prompt lengths",
    "network",
    hop_added,
)
CACHE_RESET = Rule(
    "cache-reset",
    f"first requests of shared beginnings came from the cache before ({format_percent(HIT_SHARE, digits=0)} of the "
    "prompt or more), do not now, and later ones do again",
    "prefill",
    "both sittings: traffic with shared beginnings",
    "reset",
    cache_reset,
)
CACHE_LOST = Rule(
    "cache-lost",
    "later requests of shared beginnings got slower and no longer come from the cache",
    "prefill",
    "both sittings: traffic with shared beginnings",
    "cache",
    cache_lost,
)
PREFILL_SLOWER = Rule(
    "prefill-slower",
    f"TTFT grew by {format_percent(CHANGED, digits=0)} or more, and neither the way to the server nor a slower step of "
    f"decode (which is in TTFT once) explains it",
    "prefill",
    "both sittings: TTFT",
    "prefill",
    prefill_slower,
)
DRAFTS_REJECTED = Rule(
    "drafts-rejected",
    f"decode got slower, and a step yields {format_percent(CHANGED, digits=0)} fewer tokens or acceptance fell by "
    f"{format_percent(MATERIAL_SHARE, digits=0)} or below {format_percent(LEAST_ACCEPTANCE, digits=0)}",
    "decode",
    "both sittings: when tokens left, or the server's counts of guessed and accepted tokens",
    "speculation",
    drafts_rejected,
)
DECODE_SLOWER = Rule(
    "decode-slower",
    f"TPOT grew by {format_percent(CHANGED, digits=0)} or more, and drafts do not explain it",
    "decode",
    "both sittings: TPOT",
    "decode",
    decode_slower,
)
COMPUTE_IN_VAIN = Rule(
    "compute-in-vain",
    f"prefill got at least {format_percent(MATERIAL_SHARE, digits=0)} faster, TPOT stayed within "
    f"{format_percent(UNCHANGED, digits=0)}, and decode is at least {format_percent(MATERIAL_SHARE, digits=0)} of the "
    "request",
    "decode",
    "both sittings: several prompt lengths and TPOT",
    "bandwidth",
    compute_spent_in_vain,
)
