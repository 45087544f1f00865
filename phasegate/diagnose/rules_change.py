"""Rules about two sittings: what changed, and which phase it fell on.

Kinds of request that both sittings measured are compared by name. Whether a change is more than noise is for the gate
to decide; here it is only told where a change comes from. Where a gate has compared the two (`proof.Proof`), only what
it proved is called slower, in the phase and at the cell in which it was proven.
"""

from __future__ import annotations

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose.explanation import Case, Confidence, Explanation, Rule
from phasegate.diagnose.pairs import (
    Pair,
    grew,
    later_first_token,
    lines_of,
    moved,
    pairs,
    started_slower,
    sure,
    told_prefill,
    ttft_words,
    worst,
    worth_naming,
)
from phasegate.diagnose.prefill_line import Line
from phasegate.diagnose.remedies import MORE_BANDWIDTH, MORE_COMPUTE, REMEDIES, TELL_APART
from phasegate.diagnose.rules_alone import others_words
from phasegate.diagnose.thresholds import (
    CHANGED,
    LEAST_ACCEPTANCE,
    MATERIAL_SECONDS,
    MATERIAL_SHARE,
    READING_SHARE,
    UNCHANGED,
)


def _same(new: float | None, old: float | None) -> bool:
    return bool(new and old) and abs((new or 0.0) / (old or 1.0) - 1) <= UNCHANGED


def queue_longer(case: Case) -> Explanation | None:
    """TTFT grew because requests wait longer at the server, by its own clock."""
    grown = [pair for pair in later_first_token(case) if worth_naming(case, pair, pair.waited, MATERIAL_SHARE)]
    if not grown:
        return None
    pair, proven = worst(case, grown, "ttft", lambda one: one.waited)
    old, new = pair.before.server_queue, pair.now.server_queue
    said = [
        moved("TTFT", pair.before.ttft, pair.now.ttft, proven),
        f"the server's own queue {format_seconds(old)} -> {format_seconds(new)}, though one request was sent at a time",
        *others_words(pair.now),
    ]
    return Explanation(
        "queue-longer", "slower to start than before", "a longer wait at the server: other traffic, or fewer places",
        "queueing", min(pair.waited, pair.grown(lambda ask: ask.ttft)), pair.now.name, tuple(said),
        sure(case, proven) if pair.now.others is None and pair.before.others is None else Confidence.LIKELY,
        REMEDIES["server-queue"], ("a faster prefill or shorter prompts: the wait is for others",), change=True,
    )  # fmt: skip


def hop_added(case: Case) -> Explanation | None:
    """TTFT grew by the same time at every prompt length, or outside the server: the way got longer."""
    grown = started_slower(case)
    if not grown:
        return None
    pair, proven = worst(case, grown, "ttft", lambda one: one.start)
    said = ttft_words(pair, proven)
    lines, confidence, seconds, least = lines_of(case), Confidence.LIKELY, 0.0, 1 - MATERIAL_SHARE
    if told_prefill(pair):
        # What lies outside the server's prefill has the first token's step in it, as TTFT has.
        outside = pair.grown(lambda ask: ask.outside)
        seconds, confidence, least = outside - pair.step, sure(case, proven), MATERIAL_SHARE
        said.append(
            f"the server's own prefill {format_seconds(pair.before.server_prefill)} -> "
            f"{format_seconds(pair.now.server_prefill)}; what lies outside it grew by {format_seconds(outside)}"
        )
    elif lines is not None:
        # A line through two lengths tells of neither: each kind of request must have got it.
        everywhere = min(one.start for one in pairs(case) if one.now.ttft is not None)
        seconds = lines[1].fixed - lines[0].fixed - pair.step
        seconds = seconds if everywhere >= READING_SHARE * seconds else 0.0
        said.append(f"{format_seconds(seconds)} were added at every prompt length; {_slopes(*lines)}")
    if seconds < max(MATERIAL_SECONDS, least * pair.start):
        return None
    if pair.now.connect is not None and pair.before.connect is not None:
        said.append(
            f"connection set-up {format_seconds(pair.before.connect)} -> {format_seconds(pair.now.connect)} "
            "(it does not see a hop behind the first one)"
        )
    return Explanation(
        "hop-added", "slower to start than before", "a longer way to the engine: a hop, a gateway, a region", "network",
        min(seconds, pair.start), pair.now.name, tuple(said), confidence, REMEDIES["network"],
        ("a faster prefill or shorter prompts: the same time is added to every prompt",), change=True,
    )  # fmt: skip


def _slopes(old: Line, new: Line) -> str:
    return f"per 1,000 tokens {format_seconds(old.per_token * 1000)} -> {format_seconds(new.per_token * 1000)}"


def prefill_slower(case: Case) -> Explanation | None:
    """TTFT grew, and neither the way nor a wait nor a cache nor the first token's own step explains it."""
    grown = started_slower(case)
    if not grown:
        return None
    pair, proven = worst(case, grown, "ttft", lambda one: one.start)
    seconds, how, told = _reading_longer(case, pair)
    if seconds < max(MATERIAL_SECONDS if case.proof is None else 0.0, MATERIAL_SHARE * pair.start):
        return None
    if not told and case.named("hop-added", pair.now.name):
        return None
    confidence, cause, levers = Confidence.LIKELY, "reading the prompt got slower", REMEDIES["prefill"]
    if how is None:
        cause = "reading the prompt got slower, or a fixed part was added: the way there, request handling"
        how = "only one prompt length was measured, so a fixed part cannot be told apart"
        levers = (TELL_APART, REMEDIES["network"][0], *levers)
    elif told or seconds >= READING_SHARE * pair.start:
        confidence = sure(case, proven)
    return Explanation(
        "prefill-slower", "slower to start than before", cause, "prefill", seconds, pair.now.name,
        (*ttft_words(pair, proven), how), confidence, levers, (MORE_BANDWIDTH,), change=True,
    )  # fmt: skip


def _reading_longer(case: Case, pair: Pair) -> tuple[float, str | None, bool]:
    """Seconds by which reading took longer, how that is known (None where it is not), and whether the server tells it.

    By lines over prompt lengths, all of it where the fixed part is less than a fifth: lines are no better than that.
    """
    if told_prefill(pair):
        told = pair.grown(lambda ask: ask.server_prefill)
        return min(told, pair.start), f"the server's own prefill grew by {format_seconds(told)}", True
    lines = lines_of(case)
    if lines is None:
        return pair.start, None, False
    reading = (lines[1].per_token - lines[0].per_token) * (pair.now.prompt_tokens or 0)
    fixed = pair.start - reading
    if fixed < MATERIAL_SHARE * pair.start:
        return pair.start, _slopes(*lines), False
    return reading, f"{_slopes(*lines)}; {format_seconds(fixed)} more were added at every prompt length", False


def drafts_rejected(case: Case) -> Explanation | None:
    """Steps yield fewer tokens than before, and tokens take longer for it."""
    for pair in pairs(case):
        old, new = pair.before.steps, pair.now.steps
        if old is None or new is None or not grew(case, pair, "tpot", lambda ask: ask.decode):
            continue
        counted = old.acceptance is not None and new.acceptance is not None
        rejected = counted and _fell(old.acceptance or 0.0, new.acceptance or 0.0)
        # Where guesses are counted, their count decides; else only where steps were seen to hold guesses before.
        fewer = not counted and old.guessing and _fewer_tokens(old.tokens_per_step, new.tokens_per_step)
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
        pair.grown(lambda ask: ask.decode_part), pair.now.name,
        (moved("TPOT", pair.before.tpot, pair.now.tpot, proven), *_fewer_words(pair)),
        Confidence.LIKELY if proven is None else sure(case, proven), REMEDIES["decode"], (MORE_COMPUTE,), change=True,
    )  # fmt: skip


def _fewer_words(pair: Pair) -> list[str]:
    """That fewer tokens came together than before, where nothing shows why."""
    old, new = pair.before.steps, pair.now.steps
    if old is None or new is None or not _fewer_tokens(old.tokens_per_step, new.tokens_per_step):
        return []
    if old.acceptance is not None and new.acceptance is not None:
        return []
    return [
        f"{new.tokens_per_step:.2f} tokens came at a time, {old.tokens_per_step:.2f} before: fewer right guesses look "
        "so, and so do chunks that the server or a busy client puts together; the server's count of guesses would tell"
    ]


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
    f"{format_percent(1 - MATERIAL_SHARE, digits=0)} of it at every prompt length alike, or where the server tells its "
    f"own prefill {format_percent(MATERIAL_SHARE, digits=0)} outside it",
    "network",
    "both sittings: the server's prefill time, or several prompt lengths",
    "network",
    hop_added,
)
QUEUE_LONGER = Rule(
    "queue-longer",
    f"TTFT grew by {format_percent(CHANGED, digits=0)} or more, and at least "
    f"{format_percent(MATERIAL_SHARE, digits=0)} of it is the server's own queue",
    "queueing",
    "both sittings: the server's own queue time",
    "server-queue",
    queue_longer,
)
PREFILL_SLOWER = Rule(
    "prefill-slower",
    f"TTFT grew by {format_percent(CHANGED, digits=0)} or more, and neither the way to the server nor a wait that it "
    "tells nor a slower step of decode (which is in TTFT once) explains it",
    "prefill",
    "both sittings: TTFT; the server's prefill time or several prompt lengths exclude other causes",
    "prefill",
    prefill_slower,
)
DRAFTS_REJECTED = Rule(
    "drafts-rejected",
    f"decode got slower, and acceptance fell by {format_percent(MATERIAL_SHARE, digits=0)} or below "
    f"{format_percent(LEAST_ACCEPTANCE, digits=0)}; without that count, a step yields "
    f"{format_percent(CHANGED, digits=0)} fewer tokens where guesses were seen before",
    "decode",
    "both sittings: the server's counts of guessed and accepted tokens, or chunks of proven and differing sizes",
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
