"""Settings that break one law each, by name: what a test of a law must be able to catch.

Each entry is a change to a configuration; nothing else about the engine moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phasegate.engines.simulator.config import CacheMode, SimulatorConfig


@dataclass(frozen=True, slots=True)
class Breaker:
    """A planted change.

    Attributes:
        what: what the engine does then, in one sentence.
        breaks: the law that fails, or the phase that slows down, in one sentence.
        changes: the settings that plant it.
    """

    what: str
    breaks: str
    changes: Mapping[str, Any]


BREAKERS: Mapping[str, Breaker] = {
    "ttft-constant": Breaker(
        "every first token takes 0.3 s, however long the prompt is and however much of it is cached",
        "TTFT rises with prompt length",
        {"ttft_constant_seconds": 0.3},
    ),
    "tpot-grows": Breaker(
        "each token already written makes the next one 0.1 ms slower",
        "TPOT is flat in output length",
        {"tpot_growth_seconds": 0.0001},
    ),
    "total-step": Breaker(
        "answers pause for 0.5 s after their 48th token",
        "total time is linear in output length",
        {"pause_at_token": 48, "pause_seconds": 0.5},
    ),
    "cache-off": Breaker(
        "nothing is cached",
        "the second call with the same prompt is faster",
        {"cache": CacheMode.OFF},
    ),
    "cache-slower": Breaker(
        "a cached prompt is reported as cached and takes 1.5 times as long as a new one",
        "the second call with the same prompt is faster",
        {"cache": CacheMode.SLOWER, "cache_slower_factor": 1.5},
    ),
    "stalls": Breaker(
        "answers stall for 0.25 s after every 10th token",
        "no stalls inside a stream",
        {"stall_every_tokens": 10, "stall_seconds": 0.25},
    ),
    "prefill-blocks": Breaker(
        "a prompt is computed in one piece and nobody decodes meanwhile",
        "a long prompt stalls running answers by a bounded gap only",
        {"chunked_prefill": False},
    ),
    "no-batching": Breaker(
        "one request runs at a time",
        "batching raises the total throughput",
        {"max_sequences": 1},
    ),
    "prefill-slower": Breaker(
        "prefill costs a fifth more", "prefill is as fast as the baseline", {"prefill_factor": 1.2}
    ),
    "decode-slower": Breaker(
        "decoding costs a tenth more", "decode is as fast as the baseline", {"decode_factor": 1.1}
    ),
}
"""Every planted change by name."""


def broken(config: SimulatorConfig, name: str) -> SimulatorConfig:
    """The same engine with one planted change; the change is in simulated seconds, like every setting.

    Raises:
        KeyError: no such breaker; `BREAKERS` lists them.
    """
    return config.changed(**BREAKERS[name].changes)
