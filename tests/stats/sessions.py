"""Sessions of a model engine for the tests of the laws: block tables with the noise of a quiet machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]

OUTPUTS = [16, 64, 128, 256]
PROMPTS = [64, 256, 512, 1024]
BLOCKS = 8


def noisy(shape: list[float], cv: float, seed: int = 1, blocks: int = BLOCKS) -> Table:
    """Blocks x levels around a shape; ``cv`` is a fraction."""
    rng = np.random.default_rng(seed)
    return np.asarray(np.array(shape) * np.exp(cv * rng.standard_normal((blocks, len(shape)))), dtype=np.float64)


def ttft(shape: list[float], seed: int = 1, blocks: int = BLOCKS) -> Table:
    """TTFTs: 0.6 % of noise."""
    return noisy(shape, 0.006, seed, blocks)


def tpot(shape: list[float], seed: int = 2, blocks: int = BLOCKS) -> Table:
    """TPOTs: 2.3 % of noise."""
    return noisy(shape, 0.023, seed, blocks)
