"""What each lever would save, revised by what the rest of the sitting shows, and what each figure rests on. Pure.

`diagnose.expected` reckons with one kind of request and the line of its TTFT. Here that meets the other figures: TPOT
at two lengths of context (a shorter prompt makes decode cheaper too, smaller weights leave the KV cache as it is) and
several users (checking guesses costs what several streams in a step cost). What no figure supports is named as assumed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from phasegate.core.units import format_percent, format_seconds
from phasegate.diagnose import Ask, Diagnosis, Observations
from phasegate.diagnose.context_cost import ContextCost, context_cost, context_of
from phasegate.diagnose.expected import GUESSED, Expectation, expectations
from phasegate.diagnose.prefill_line import prefill_line
from phasegate.diagnose.rules_load import BATCH_COST
from phasegate.diagnose.step_cost import StepCost, step_cost
from phasegate.diagnose.thresholds import COMPUTE_BOUND, USUAL_ACCEPTANCE

BOTH = "prefill and decode"
"""What a lever acts on that makes both phases shorter."""


class Kind(str, enum.Enum):
    """Levers whose saving can be reckoned, whatever words a finding has for them."""

    CACHE = "prefix caching"
    PROMPT = "shorter prompts"
    REASONING = "fewer reasoning tokens"
    ANSWER = "fewer output tokens"
    SPECULATION = "speculative decoding"
    WEIGHTS = "smaller weights"
    CONTEXT = "smaller KV cache"
    BANDWIDTH = "memory bandwidth"
    COMPUTE = "arithmetic"


_PHRASES: tuple[tuple[str, Kind], ...] = (
    ("(prefix) caching", Kind.CACHE),
    ("prefix caching", Kind.CACHE),
    ("prompt caching", Kind.CACHE),
    ("shorter prompts", Kind.PROMPT),
    ("half the prompt", Kind.PROMPT),
    ("fewer reasoning tokens", Kind.REASONING),
    ("half the reasoning", Kind.REASONING),
    ("fewer output tokens", Kind.ANSWER),
    ("half the answer", Kind.ANSWER),
    ("speculative decoding", Kind.SPECULATION),
    ("quantized weights", Kind.WEIGHTS),
    ("number format", Kind.WEIGHTS),
    ("weights of half the bytes", Kind.WEIGHTS),
    ("or KV cache", Kind.CONTEXT),
    ("KV cache of half the bytes", Kind.CONTEXT),
    ("memory bandwidth", Kind.BANDWIDTH),
    ("FLOP/s", Kind.COMPUTE),
    ("more compute", Kind.COMPUTE),
)
"""Words of levers, of findings and of the reckoning -> what they are."""


def kinds_of(lever: str) -> tuple[Kind, ...]:
    """The levers that some words name, in their order; none for what cannot be reckoned, or is switched off."""
    if lever.endswith(" off"):
        return ()
    found = sorted((lever.index(words), kind) for words, kind in _PHRASES if words in lever)
    return tuple(dict.fromkeys(kind for _, kind in found))


@dataclass(frozen=True, slots=True)
class Saving:
    """What one lever would save of one request.

    Attributes:
        kind: which lever.
        lever: what is done, with its size.
        phase: what it acts on: ``prefill``, ``decode`` or `BOTH`.
        where: what has to change: the ``server``, the ``request`` or the ``hardware``.
        seconds: of one request; 0.0 where it cannot save anything.
        arithmetic: how that follows from the measured figures.
        at_most: whether it is a bound that a real lever stays below.
        rests_on: ``measured`` figures, or what is assumed beside them.
    """

    kind: Kind
    lever: str
    phase: str
    where: str
    seconds: float
    arithmetic: str
    at_most: bool
    rests_on: str = "measured times"

    @property
    def words(self) -> str:
        """The saving with its unit, as a bound where it is one."""
        return f"{'at most ' if self.at_most else ''}{format_seconds(self.seconds)}"


@dataclass(frozen=True, slots=True)
class _Costs:
    """What the sitting shows beside the request itself.

    Attributes:
        ask: the request.
        context: how TPOT grows with the context, or None.
        steps: how a step grows with streams, or None.
        dear: why arithmetic is known to be decode's limit; empty where it is not.
    """

    ask: Ask
    context: ContextCost | None
    steps: StepCost | None
    dear: str

    @property
    def count(self) -> float:
        """Steps of decode behind the first token."""
        return max(0.0, (self.ask.output_tokens or 0.0) - 1)

    @property
    def on_context(self) -> float:
        """Seconds of decode that go into reading the context."""
        if self.context is None:
            return 0.0
        return min(
            self.ask.decode_part or 0.0, self.context.seconds(context_of(self.ask) or 0.0, self.count)
        )  # A line through two points may promise more than there is.


def savings(
    observations: Observations, diagnosis: Diagnosis, ask: Ask, shared_tokens: int = 0, cached: float | None = None
) -> list[Saving]:
    """Every lever whose arithmetic the figures allow, the largest saving first.

    Args:
        situation: all that was measured.
        diagnosis: what the rules made of it.
        ask: the kind of request that is looked at, measured alone.
        shared_tokens: prompt tokens that it shares with earlier requests; 0 for none.
        cached: TTFT measured with these in the cache, or None.
    """
    context = context_cost(observations.asks)
    own = context.seconds(context_of(ask) or 0.0, 1) if context is not None else 0.0
    steps = step_cost(observations.levels, _reading(ask), own)
    costs = _Costs(ask, context, steps, _dear(observations, diagnosis))
    expected = expectations(ask, prefill_line(observations.asks), shared_tokens, cached)
    found = [_revised(one, costs) for one in expected if not (_speculates(ask) and _is(one, Kind.SPECULATION))]
    found += _smaller_context(costs)
    return sorted(found, key=lambda one: -one.seconds)


def _reading(ask: Ask) -> float:
    """Share of the request that passes with its prompt; 1.0 where that is not known."""
    if ask.prefill_part is None or ask.decode_part is None:
        return 1.0
    return ask.prefill_part / ((ask.prefill_part + ask.decode_part) or 1.0)


def _is(one: Expectation, kind: Kind) -> bool:
    return kinds_of(one.lever) == (kind,)


def _speculates(ask: Ask) -> bool:
    """Whether the engine guesses tokens already."""
    return ask.steps is not None and ask.steps.guessing


def _dear(observations: Observations, diagnosis: Diagnosis) -> str:
    """Why arithmetic is decode's limit, in one clause; empty where nothing shows it."""
    share = observations.machine.decode_compute
    if share is not None and share >= COMPUTE_BOUND:
        return f"decode alone takes {format_percent(share, digits=0)} of the peak FLOP/s"
    if any(one.rule == BATCH_COST.name for one in diagnosis.found):
        return "steps cost in proportion to their streams"
    return ""


def _revised(one: Expectation, costs: _Costs) -> Saving:
    (kind,) = kinds_of(one.lever)
    plain = Saving(kind, one.lever, one.phase, one.where, one.seconds, one.arithmetic, one.at_most)
    revise = {
        Kind.CACHE: _cache,
        Kind.PROMPT: _prompt,
        Kind.SPECULATION: _speculation,
        Kind.WEIGHTS: _weights,
        Kind.BANDWIDTH: _bandwidth,
        Kind.COMPUTE: _compute,
    }.get(kind)
    return plain if revise is None else revise(plain, costs)


def _cache(one: Saving, _: _Costs) -> Saving:
    if not one.at_most:
        return replace(one, rests_on="measured with and without")
    return replace(one, rests_on="all shared tokens found in the cache: assumed")


def _prompt(one: Saving, costs: _Costs) -> Saving:
    """Fewer tokens to read once, and fewer in the KV cache at every step."""
    if costs.context is None or not costs.ask.prompt_tokens:
        return one
    half = costs.ask.prompt_tokens // 2
    decode = min(costs.on_context, costs.context.seconds(half, costs.count))
    return replace(
        one,
        phase=BOTH,
        seconds=one.seconds + decode,
        arithmetic=(
            f"{one.arithmetic} make {format_seconds(one.seconds)} of prefill; {costs.count:,.0f} steps of decode "
            f"with {half:,} tokens less in the KV cache make {format_seconds(decode)} ({costs.context.words()})"
        ),
    )  # fmt: skip


def _speculation(one: Saving, costs: _Costs) -> Saving:
    """What a step yields against what checking costs, where several users have shown that."""
    guesses = f"{GUESSED} guesses a step of which {format_percent(USUAL_ACCEPTANCE, digits=0)} are right: assumed"
    decode = costs.ask.decode_part or 0.0
    steps = costs.steps
    if steps is None:
        if costs.dear:
            said = f"guesses trade reading for arithmetic, and arithmetic is the limit: {costs.dear}"
            return replace(one, seconds=0.0, arithmetic=said, at_most=False, rests_on="measured times")
        checking = f"checking {GUESSED + 1} tokens in the time of one: assumed, not measured"
        return replace(one, rests_on=f"{guesses}; {checking}")
    tokens = sum(USUAL_ACCEPTANCE**n for n in range(GUESSED + 1))
    times = steps.of_tokens(GUESSED + 1)
    seconds = max(0.0, decode * (1 - times / tokens))
    said = (
        f"{tokens:.1f} tokens a step with {GUESSED} guesses; checking {GUESSED + 1} tokens takes x {times:.2f} or "
        f"more, as {steps.streams:.1f} streams in a step show: "
        f"{format_seconds(decode)} x (1 - {times:.2f} / {tokens:.1f})"
    )
    if not seconds:
        said += " is no saving"
    return replace(
        one, seconds=seconds, arithmetic=said, rests_on=f"{guesses}; a step's cost: measured", at_most=seconds > 0
    )


def _weights(one: Saving, costs: _Costs) -> Saving:
    """Only the part of a step that reads weights: the KV cache stays as large as it is."""
    whole, context = costs.ask.decode_part or 0.0, costs.on_context
    alone = "a step that does nothing but read weights"
    if context:
        left = whole - context
        return replace(
            one,
            seconds=left / 2,
            arithmetic=f"half of {format_seconds(left)}: decode without the {format_seconds(context)} that reading the "
            "KV cache takes",
            rests_on=_doubted(f"{alone} and the KV cache: assumed", costs),
        )
    return replace(one, rests_on=_doubted(f"{alone}: assumed", costs))


def _bandwidth(one: Saving, costs: _Costs) -> Saving:
    return replace(one, rests_on=_doubted("decode that waits for memory all the time: assumed", costs))


def _doubted(assumed: str, costs: _Costs) -> str:
    return f"{assumed}, and doubtful: {costs.dear}" if costs.dear else assumed


def _compute(one: Saving, costs: _Costs) -> Saving:
    """Prefill, and decode too where arithmetic is its limit."""
    assumed = "prefill that does nothing but compute: assumed"
    if not costs.dear or not costs.ask.decode_part:
        return replace(one, rests_on=assumed)
    decode = costs.ask.decode_part
    return replace(
        one,
        phase=BOTH,
        seconds=one.seconds + decode / 2,
        arithmetic=f"{one.arithmetic.split(';')[0]}, and half of {format_seconds(decode)} of decode: {costs.dear}",
        rests_on="phases that do nothing but compute: assumed",
    )


def _smaller_context(costs: _Costs) -> list[Saving]:
    """A KV cache of half the bytes, where reading it is seen to take time."""
    context = costs.on_context
    if costs.context is None or not context:
        return []
    how = f"half of the {format_seconds(context)} that reading the KV cache takes ({costs.context.words()})"
    rests = "all that grows with the context being the reading of its bytes: assumed"
    return [
        Saving(Kind.CONTEXT, "a KV cache of half the bytes", "decode", "server", context / 2, how, True, rests),
    ]  # fmt: skip
