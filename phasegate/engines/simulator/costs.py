"""What a step of the simulated engine costs, and what holds an answer up between steps. Formulas only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from phasegate.engines.simulator.chance import RequestEffect, lognormal, rng_for
from phasegate.engines.simulator.config import SimulatorConfig


class Costed(Protocol):
    """What the cost of a request depends on.

    Attributes:
        effect: factors of chance, drift and planted slowdowns on each phase.
        prefilled: prompt tokens computed so far.
        begun: whether a piece of its prompt was computed in an earlier step.
        written: answer tokens so far.
        slower: factor on its prefill because of a cache that slows it down, else 1.
        context: tokens that it has in the KV cache.
    """

    effect: RequestEffect
    prefilled: int
    begun: bool
    written: int
    slower: float

    @property
    def context(self) -> int: ...


def step_seconds(config: SimulatorConfig, prefill: Sequence[tuple[Costed, int]], decode: Sequence[Costed]) -> float:
    """The cost of one step, before its own noise.

    The weights are read once, whoever needs them: by the decoding requests, or by the prompts when none decodes.
    """
    seconds = 0.0
    if decode:
        seconds += _decode_seconds(config, decode)
    if prefill and config.ttft_constant_seconds is None:
        seconds += sum(_prefill_seconds(config, sequence, tokens) for sequence, tokens in prefill)
        if not decode:
            seconds += config.step_seconds * prefill[0][0].effect.prefill
    return seconds


def _decode_seconds(config: SimulatorConfig, decode: Sequence[Costed]) -> float:
    """Weights + KV cache + requests + guesses + company, by the mean of the requests' own factors."""
    base = (
        config.step_seconds
        + config.kv_seconds_per_token * sum(sequence.context for sequence in decode)
        + (config.sequence_seconds + config.draft_seconds * config.draft_tokens) * len(decode)
        + (config.together_seconds if len(decode) > 1 else 0.0)
    )
    factor = sum(sequence.effect.decode for sequence in decode) / len(decode)
    growth = config.tpot_growth_seconds * max(sequence.written for sequence in decode)
    return base * factor + growth


def _prefill_seconds(config: SimulatorConfig, sequence: Costed, tokens: int) -> float:
    """Linear in the piece's tokens, plus attention of each of them to all before it, plus the price of beginning."""
    pairs = tokens * (sequence.prefilled + tokens / 2)
    base = tokens / config.prefill_tokens_per_second + config.attention_seconds_per_token_pair * pairs
    if not sequence.begun:
        base += config.prompt_seconds
    return base * sequence.effect.prefill * sequence.slower


def step_noise(config: SimulatorConfig, number: int) -> float:
    """The factor of chance on the step of that number."""
    return lognormal(config.step_cv, rng_for(config, "step", number)) if config.step_cv else 1.0


def pause_after(config: SimulatorConfig, before: int, after: int) -> float:
    """How long an answer is held up when it has grown from ``before`` to ``after`` tokens."""
    seconds = 0.0
    if before < config.pause_at_token <= after:
        seconds += config.pause_seconds
    every = config.stall_every_tokens
    if every and after // every > before // every:
        seconds += config.stall_seconds
    return seconds


def network_delay(config: SimulatorConfig, number: int, token: int) -> float:
    """From the end of a step to the departure of a chunk that begins with that token."""
    if config.network_jitter_seconds == 0:
        return config.network_seconds
    jitter = rng_for(config, "network", number, token).random() * config.network_jitter_seconds
    return config.network_seconds + jitter
