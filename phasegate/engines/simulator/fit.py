"""Settings fitted to a real engine's curves, so that the simulator can be checked against it, and stand in for it.

The model is linear in its costs, so this is non-negative least squares on relative errors (Lawson and Hanson, Solving
Least Squares Problems, 1974, chapter 23): a long prompt counts no more than a short one, and no cost is below zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from phasegate.engines.simulator.config import SimulatorConfig

SMALLEST_STEP = 1e-6
"""Seconds; the model needs a step to take some time."""


class FitError(ValueError):
    """There are too few measurements to fit to. The message is one line."""


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A measured time to first token on an otherwise idle engine, seconds, on a cold cache.

    Attributes:
        prompt_tokens: of each prompt.
        seconds: what was measured.
        prompts: requests that came together and got their first tokens together; 1 had the engine to itself.
    """

    prompt_tokens: int
    seconds: float
    prompts: int = 1


@dataclass(frozen=True, slots=True)
class PerToken:
    """A measured time per output token, seconds.

    Attributes:
        streams: requests that decoded together.
        context_tokens: tokens each of them had in the KV cache, prompt and half its answer.
        seconds: what was measured.
    """

    streams: int
    context_tokens: float
    seconds: float


def fit(base: SimulatorConfig, ttft: Sequence[FirstToken], tpot: Sequence[PerToken]) -> SimulatorConfig:
    """The settings of ``base`` with its costs fitted.

    A cost that the measurements cannot tell from others is 0: ``together_seconds`` without TPOT of one stream and of
    two other numbers of streams, ``prompt_seconds`` without TTFT of different numbers of prompts.

    Raises:
        FitError: TTFT at fewer than three prompt lengths, or TPOT at fewer than three points.
    """
    if len({point.prompt_tokens for point in ttft}) < 3:
        raise FitError(f"TTFT must be measured at 3 prompt lengths or more to be fitted, got {len(ttft)} measurements")
    if len({(point.streams, point.context_tokens) for point in tpot}) < 3:
        raise FitError(f"TPOT must be measured at 3 points or more to be fitted, got {len(tpot)} measurements")
    streams = {point.streams for point in tpot}
    step, sequence, kv, together = _costs(
        [[1.0, p.streams, p.streams * p.context_tokens, float(p.streams > 1)] for p in tpot],
        [p.seconds for p in tpot],
        known=(True, True, True, 1 in streams and len(streams) > 2),
    )
    step = max(step, SMALLEST_STEP)
    overhead, token, pair, prompt = _costs(
        [[1.0, p.prompts * p.prompt_tokens, p.prompts * p.prompt_tokens**2 / 2, p.prompts] for p in ttft],
        [p.seconds for p in ttft],
        known=(True, True, True, len({point.prompts for point in ttft}) > 1),
        # TTFT holds one step beside the prompts' own cost, and the waiting for company.
        given=step + base.gather_seconds,
    )
    return base.changed(
        step_seconds=step,
        sequence_seconds=sequence,
        together_seconds=together,
        kv_seconds_per_token=kv,
        request_overhead_seconds=overhead,
        prompt_seconds=prompt,
        prefill_tokens_per_second=1.0 / max(token, 1e-12),
        attention_seconds_per_token_pair=pair,
    )


def _costs(
    terms: Sequence[Sequence[float]], seconds: Sequence[float], *, known: Sequence[bool], given: float = 0.0
) -> tuple[float, float, float, float]:
    """Four costs, none below zero, whose sums of terms come closest to the measured times, in relative terms.

    Those that are not ``known``, because nothing measured tells them from the others, are 0. ``given`` seconds of each
    measured time are explained already.
    """
    measured = np.asarray(seconds, dtype=float)
    rows = np.asarray(terms, dtype=float)[:, list(known)] / measured[:, None]
    # Columns of like size: the solver's tolerance is absolute.
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    found, _ = nnls(rows / scale, (measured - given) / measured)
    values = iter((found / scale).tolist())
    first, second, third, fourth = (float(next(values)) if one else 0.0 for one in known)
    return first, second, third, fourth
