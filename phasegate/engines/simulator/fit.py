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
    """A measured time to first token of a request that had the engine to itself, seconds, on a cold cache."""

    prompt_tokens: int
    seconds: float


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

    Raises:
        FitError: TTFT at fewer than three prompt lengths, or TPOT at fewer than three points.
    """
    if len({point.prompt_tokens for point in ttft}) < 3:
        raise FitError(f"TTFT must be measured at 3 prompt lengths or more to be fitted, got {len(ttft)} measurements")
    if len({(point.streams, point.context_tokens) for point in tpot}) < 3:
        raise FitError(f"TPOT must be measured at 3 points or more to be fitted, got {len(tpot)} measurements")
    step, sequence, kv = _costs(
        [[1.0, p.streams, p.streams * p.context_tokens] for p in tpot], [p.seconds for p in tpot]
    )
    start, token, pair = _costs(
        [[1.0, p.prompt_tokens, p.prompt_tokens**2 / 2] for p in ttft], [p.seconds for p in ttft]
    )
    return base.changed(
        step_seconds=max(step, SMALLEST_STEP),
        sequence_seconds=sequence,
        kv_seconds_per_token=kv,
        # TTFT holds one step beside the prompt's own cost; what is left of its fixed part is overhead.
        request_overhead_seconds=max(0.0, start - step),
        prefill_tokens_per_second=1.0 / max(token, 1e-12),
        attention_seconds_per_token_pair=pair,
    )


def _costs(terms: Sequence[Sequence[float]], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Three costs, none below zero, whose sums of terms come closest to the measured times, in relative terms."""
    measured = np.asarray(seconds, dtype=float)
    rows = np.asarray(terms, dtype=float) / measured[:, None]
    # Columns of like size: the solver's tolerance is absolute.
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    found, _ = nnls(rows / scale, np.ones(len(measured)))
    first, second, third = (float(value) for value in found / scale)
    return first, second, third
