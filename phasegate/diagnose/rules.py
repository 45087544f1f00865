"""All rules of the diagnosis in the order in which they look, and the diagnosis itself.

What a general rule would say is said only of the time that no specific one has claimed. Findings are told by the time
of a request that they explain, changes first where two sittings are compared, and doubts about the measurement before
everything: figures of a late client or a busy host say nothing about the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose import rules_alone, rules_cache, rules_change, rules_load, rules_memory, rules_stream
from phasegate.diagnose.explanation import NEITHER, Case, Confidence, Explanation, Rule
from phasegate.diagnose.observations import Ask, Observations
from phasegate.diagnose.proof import Proof
from phasegate.diagnose.remedies import REMEDIES
from phasegate.diagnose.thresholds import CHANGED, SEVERAL_TOKENS
from phasegate.gate.binding import MAJORITY


def doubtful(case: Case) -> Explanation | None:
    """The client was late, or the engine's host was busy with something else."""
    notes = (*case.now.client, *case.now.host)
    late = bool(case.now.client)
    if case.before is not None and case.proof is None:  # A gate leaves such sessions out before it compares.
        notes += tuple(f"the earlier sitting: {note}" for note in (*case.before.client, *case.before.host))
        late = late or (bool(case.before.client) and not case.now.host)
    if not notes:
        return None
    where = "the client" if late else "the engine's host"
    levers = REMEDIES["client"] if late else REMEDIES["client"][::-1]
    return Explanation(
        "client-or-host", "figures that move by themselves", f"{where}, not the engine", NEITHER, 0.0, "every request",
        notes, Confidence.SURE, levers, ("any change of the engine: neither phase is to blame",),
    )  # fmt: skip


CLIENT_OR_HOST = Rule(
    "client-or-host",
    "the client's own clock shows it late, or the engine's host was disturbed",
    NEITHER,
    "the client's health, which every run watches; the host's where it is this one",
    "client",
    doubtful,
)

RULES: tuple[Rule, ...] = (
    CLIENT_OR_HOST,
    rules_change.QUEUE_LONGER,
    rules_change.HOP_ADDED,
    rules_cache.CACHE_RESET,
    rules_cache.CACHE_LOST,
    rules_change.PREFILL_SLOWER,
    rules_change.DRAFTS_REJECTED,
    rules_change.DECODE_SLOWER,
    rules_change.COMPUTE_IN_VAIN,
    rules_load.BATCH_COST,
    rules_load.NO_BATCHING,
    rules_memory.KV_FULL,
    rules_load.QUEUEING,
    rules_load.STALLED,
    rules_stream.HAND_OFF,
    rules_alone.REASONING,
    rules_alone.SERVER_QUEUE,
    rules_alone.UNCACHED,
    rules_alone.FAR_AWAY,
    rules_alone.SLOW_START,
    rules_stream.IDLE_DRAFTS,
    rules_stream.SLOW_STREAM,
)
"""Every rule: doubts, changes, load, then single requests from the specific to the general."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What takes the time.

    Attributes:
        found: what the rules found, the most important first.
        share: where the time of the longest request goes, in one sentence; None where no request tells.
        phase: ``prefill``, ``decode`` or ``both``: what would have to get faster for that request; None likewise.
        missing: what was not measured and could have told more.
        compared: the smallest growth that was looked for against an earlier sitting; None without one.
        steps: how tokens leave, in one sentence, where several leave together or guesses are counted; else None.
        unexplained: what a gate proved slower where no rule says why, one clause each.
        missed: objectives that load broke where no rule says why, one clause each.
        gated: whether a gate compared the two sittings, so that only what it proved is called slower.
    """

    found: tuple[Explanation, ...]
    share: str | None = None
    phase: str | None = None
    missing: tuple[str, ...] = ()
    steps: str | None = None
    compared: float | None = None
    unexplained: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    gated: bool = False

    @property
    def first(self) -> Explanation | None:
        """What is named first; None where nothing is slow."""
        return self.found[0] if self.found else None


def diagnose(
    now: Observations,
    before: Observations | None = None,
    *,
    least: float = CHANGED,
    after: Observations | None = None,
    proof: Proof | None = None,
) -> Diagnosis:
    """What takes the time of these requests, and with an earlier sitting what made them slower.

    Pure: the same figures give the same words.

    Args:
        now: what was measured.
        before: the same earlier, or None.
        least: smallest growth that is explained, a fraction.
        after: what ``before`` is compared with, where a gate compared other sessions than ``now``.
        proof: what a gate proved slower; where it is given, nothing else is called slower than before.
    """
    case = Case(now, before, least=least, after=after, proof=proof)
    for rule in RULES:
        found = rule.look(case)
        if found is not None:
            case = replace(case, found=(*case.found, found))
    ranked = sorted(
        map(partial(_doubted, case), case.found), key=lambda one: (one.phase != NEITHER, not one.change, -one.seconds)
    )
    longest = now.longest
    share, phase = _share(longest) if longest is not None else (None, None)
    return Diagnosis(
        found=tuple(ranked),
        share=share,
        phase=phase,
        missing=tuple(_missing(now)),
        steps=_steps(now),
        compared=None if before is None else least,
        unexplained=_unexplained(ranked, proof),
        gated=proof is not None,
    )


def _doubted(case: Case, one: Explanation) -> Explanation:
    """A finding, no longer sure where the figures are doubtful; what a gate proved rests on sessions of its own."""
    doubt = any(other.phase == NEITHER for other in case.found)
    if not doubt or one.phase == NEITHER or (one.change and case.proof is not None):
        return one
    return replace(one, confidence=Confidence.LIKELY)


def _unexplained(found: Sequence[Explanation], proof: Proof | None) -> tuple[str, ...]:
    """What was proven slower where no rule says why: the rows that decide, else those that inform."""
    slower = any(one.change and one.rule != rules_change.COMPUTE_IN_VAIN.name for one in found)
    return () if slower or proof is None else tuple(one.name for one in proof.gated or proof.rows)


def _share(ask: Ask) -> tuple[str | None, str | None]:
    """Where the time of one request goes, and the phase that takes most of it."""
    reading, decode = ask.prefill_part, ask.decode_part
    if ask.ttft is None or reading is None or decode is None:
        return None, None
    total = reading + decode
    prefill = reading / total
    thinking = f", {format_seconds(ask.hidden_thinking)} of it reasoning unseen" if ask.hidden_thinking else ""
    said = (
        f"the longest request, {ask.name}, takes {format_seconds(total)}: TTFT {format_seconds(reading)} "
        f"({format_percent(prefill, digits=0)}), decode {format_seconds(decode)} "
        f"({format_percent(1 - prefill, digits=0)}{thinking})"
    )
    if prefill >= MAJORITY:
        return said, "prefill"
    return said, "decode" if prefill <= 1 - MAJORITY else "both"


TOGETHER = 1.1
"""Tokens a step from which several leave together: fewer are chunks that a busy client saw at one moment."""


def _steps(now: Observations) -> str | None:
    """Tokens a step, a chunk, and accepted guesses of the request with the most tokens a step."""
    known = [ask.steps for ask in now.asks if ask.steps is not None and ask.steps.tokens_per_step is not None]
    told = [one for one in known if one.drafted or (one.tokens_per_step or 0.0) >= TOGETHER]
    if not told:
        return None
    steps = max(told, key=lambda one: one.tokens_per_step or 0.0)
    said = f"{steps.tokens_per_step:.2f} tokens leave in a step"
    if steps.tokens_per_chunk is not None:
        said += f", {steps.tokens_per_chunk:.2f} in a chunk"
    if steps.chunks:
        said += f" ({', '.join(f'{count} x {tokens}' for tokens, count in steps.chunks)})"
    if steps.drafted:
        said += f"; {steps.accepted:,} of {steps.drafted:,} guessed tokens accepted"
    if steps.first_chunk >= SEVERAL_TOKENS:
        more = steps.first_chunk - 1
        return (
            f"{said}; the first chunk holds {steps.first_chunk:.2g}, which TPOT takes for one: it reads low by "
            f"{more:.2g}/(N - 1) in an answer of N tokens ({format_percent(more / 63, digits=0)} at 64)"
        )
    return f"{said}; TPOT counts tokens, so bursts do not touch it"


def _missing(now: Observations) -> list[str]:
    """What was not measured, in few words."""
    lengths = {ask.prompt_tokens for ask in now.asks}
    told = [
        ("several prompt lengths (prefill told apart from a fixed delay)", len(lengths) > 1),
        ("several users (batching and queueing)", len(now.levels) > 1),
        ("a long prompt among streams (chunked prefill)", now.stall is not None),
        ("a second call with the same beginning (prefix cache)", bool(now.caches) or now.repeats is not None),
    ]
    return [words for words, known in told if not known]
