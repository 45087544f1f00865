"""Prompts for a trace: the recorded lengths, and the recorded sharing of prefixes where the trace has it.

A trace has no text. Each prompt is a row of one-token words; a block that several requests name comes out the same in
all of them, so that a prefix cache finds what it would have found. Prompts of a trace without blocks share nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from phasegate.core.prompt import Calibration, CalibrationError
from phasegate.core.request import Request
from phasegate.core.timeline import Expected
from phasegate.load.trace import BLOCK_TOKENS, Trace, TraceRequest

CHANCE_TOKENS = 8
"""Tokens that two unrelated prompts may share at their start by chance and still count as cold."""

MakeRequest = Callable[[str, Expected, int], Request]
"""Prompt, what to expect, answer tokens -> the request in the engine's dialect (`SessionRunner.request`)."""


def trace_requests(
    trace: Trace, calibration: Calibration, seed: int, make: MakeRequest, *, endpoint: str, length_is_forced: bool
) -> list[Request]:
    """The requests of a trace in order of time.

    Raises:
        CalibrationError: a prompt is too short for the server's template.
    """
    requests = []
    for place, one in enumerate(trace.requests):
        expected = Expected(
            endpoint=endpoint,
            max_tokens=one.output_tokens,
            output_tokens=one.output_tokens if length_is_forced else None,
            prompt_tokens=one.input_tokens,
            cold_prompt=not one.blocks,
            tolerated_cached_tokens=calibration.overhead + CHANCE_TOKENS,
        )
        requests.append(make(write_prompt(one, place, calibration, seed), expected, one.output_tokens))
    return requests


def write_prompt(one: TraceRequest, place: int, calibration: Calibration, seed: int) -> str:
    """The prompt of a request: exactly its length on the server, template included.

    ``place`` tells prompts without blocks apart.

    Raises:
        CalibrationError: the template alone is as long as the prompt.
    """
    words = one.input_tokens - calibration.overhead
    if words < 1:
        raise CalibrationError(
            f"a prompt of {one.input_tokens} tokens cannot be written: the server's template alone adds "
            f"{calibration.overhead}; take requests that short out of the trace"
        )
    keys = [f"block/{block}" for block in one.blocks] or [f"request/{place}"]
    row: list[str] = []
    for number, key in enumerate(keys):
        last = number == len(keys) - 1
        # The template's tokens are part of the first block, so that blocks end where the server's do.
        full = BLOCK_TOKENS - (calibration.overhead if number == 0 else 0)
        row += _words(calibration.words, f"{seed}|{key}", words - len(row) if last else min(full, words - len(row)))
    return " ".join([_first_word(calibration, f"{seed}|{keys[0]}"), *row[1:]])


def _first_word(calibration: Calibration, key: str) -> str:
    return calibration.first_words[_seed_of(key) % len(calibration.first_words)]


def _words(vocabulary: Sequence[str], key: str, count: int) -> list[str]:
    """So many words for a key; fewer are the beginning of more."""
    rng = np.random.default_rng(_seed_of(key))
    return [vocabulary[int(place)] for place in (rng.random(max(count, 0)) * len(vocabulary)).astype(int)]


def _seed_of(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
