"""What each lever would save of one request, by arithmetic on what was measured: a bound, not a promise.

TTFT is a fixed part plus seconds a prompt token; decode is TPOT a token. A lever that takes away tokens saves exactly
their time as long as the rest stays as it is. A lever that speeds up a phase saves at most what its bound says.
"""

from __future__ import annotations

from dataclasses import dataclass

from phasegate.core.units import format_seconds
from phasegate.diagnose.observations import Ask
from phasegate.diagnose.prefill_line import Line
from phasegate.diagnose.thresholds import USUAL_ACCEPTANCE

GUESSED = 4
"""Tokens guessed ahead that the arithmetic of speculative decoding assumes: what engines' defaults are near."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one lever would save.

    Attributes:
        lever: what is done, with its size.
        phase: what it acts on.
        where: what has to change: the ``server``, the ``request`` or the ``hardware``.
        seconds: saved of one request; 0.0 where it cannot save anything.
        arithmetic: how that follows from the measured figures.
        at_most: whether it is a bound that a real lever stays below.
    """

    lever: str
    phase: str
    where: str
    seconds: float
    arithmetic: str
    at_most: bool


def expectations(ask: Ask, line: Line | None, shared_tokens: int = 0, cached: float | None = None) -> list[Expectation]:
    """Every lever whose arithmetic the figures allow, the largest saving first.

    Args:
        ask: one kind of request, measured alone.
        line: its TTFT over prompt length, or None.
        shared_tokens: prompt tokens that it shares with earlier requests; 0 for none.
        cached: TTFT measured with these in the cache, or None.
    """
    found = [*_prefill(ask, line, shared_tokens, cached), *_decode(ask)]
    return sorted(found, key=lambda one: -one.seconds)


def _prefill(ask: Ask, line: Line | None, shared: int, cached: float | None) -> list[Expectation]:
    if ask.ttft is None:
        return []
    found = []
    if shared and cached is not None:
        saved = max(0.0, ask.ttft - cached)
        how = f"measured: TTFT {format_seconds(ask.ttft)} without, {format_seconds(cached)} with the cache"
        found.append(
            Expectation(f"prefix caching of {shared:,} shared tokens", "prefill", "server", saved, how, at_most=False)
        )
    if line is None or not ask.prompt_tokens:
        return found
    reading = max(0.0, min(ask.prefill_part or 0.0, line.reading(ask.prompt_tokens)))
    each = f"{format_seconds(line.per_token * 1000)} per 1,000 tokens"
    if shared and cached is None:
        saved = min(reading, line.reading(shared))
        how = f"{shared:,} tokens at {each}"
        found.append(
            Expectation(f"prefix caching of {shared:,} shared tokens", "prefill", "server", saved, how, at_most=True)
        )
    half = ask.prompt_tokens // 2
    how = f"{half:,} tokens at {each}"
    found.append(
        Expectation("half the prompt", "prefill", "request", min(reading, line.reading(half)), how, at_most=False)
    )
    how = f"half of the {format_seconds(reading)} that reading takes; the fixed part of TTFT and decode stay"
    found.append(Expectation("twice the FLOP/s, same bandwidth", "prefill", "hardware", reading / 2, how, at_most=True))
    return found


def _decode(ask: Ask) -> list[Expectation]:
    decode, tokens = ask.decode_part, ask.output_tokens
    if decode is None or not tokens or tokens < 2 or ask.tpot is None:
        return []
    found = []
    if ask.reasoning_tokens and ask.reasoning_tokens >= 2:
        few = int(ask.reasoning_tokens // 2)
        how = f"{few:,} tokens at TPOT {format_seconds(ask.tpot)}"
        found.append(Expectation("half the reasoning", "decode", "request", few * ask.tpot, how, at_most=False))
    half = int((tokens - (ask.reasoning_tokens or 0)) // 2)
    step = (1 - USUAL_ACCEPTANCE ** (GUESSED + 1)) / (1 - USUAL_ACCEPTANCE)
    whole = format_seconds(decode)
    return [
        *found,
        Expectation("half the answer", "decode", "request", half * ask.tpot,
                    f"{half:,} tokens at TPOT {format_seconds(ask.tpot)}", at_most=False),
        Expectation("speculative decoding", "decode", "server", decode * (1 - 1 / step),
                    f"{step:.1f} tokens a step with {GUESSED} guesses of which {USUAL_ACCEPTANCE:.0%} are right; "
                    f"checking them is not free: less than {whole} x (1 - 1 / {step:.1f})", at_most=True),
        Expectation("weights of half the bytes", "decode", "server", decode / 2,
                    f"half of {whole} where reading weights is all that a step does", at_most=True),
        Expectation("twice the memory bandwidth", "decode", "hardware", decode / 2,
                    f"half of {whole}; prefill stays", at_most=True),
    ]  # fmt: skip
