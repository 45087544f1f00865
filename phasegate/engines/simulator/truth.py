"""The truth log: what was planned for every request and when its bytes really left, for measurements to be held to.

All moments are seconds on the machine's monotonic clock (``time.monotonic``), which processes of one machine share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Sent:
    """One chunk.

    Attributes:
        planned: when it should have left.
        actual: when it was handed to the kernel; None while it is held back.
        first: index of its first token.
        tokens: tokens it carried.
    """

    planned: float
    actual: float | None
    first: int
    tokens: int


@dataclass(slots=True)
class Truth:
    """One generation request.

    Attributes:
        number: counted from 1 in the order of arrival.
        arrived: when the whole request had been read.
        simulated_at: the same moment in the simulator's own seconds, for replaying the plan.
        prompt_tokens, output_tokens: lengths that the engine worked with.
        queued, prefill_start, prefill_end, handed_over: the engine's own moments; None where they never came.
        cached_tokens: prompt tokens found in the prefix cache.
        preemptions: times it was thrown out of the KV memory.
        drafted, accepted: tokens guessed ahead, and those that were right.
        fault: the fault that hit it, or None.
        outcome: ``running``, ``finished``, ``refused`` (an error status), ``broken`` (a fault ended it) or
            ``abandoned`` (the client went away).
        chunks: every chunk with tokens.
        ended: when the last byte left; None before.
    """

    number: int
    arrived: float
    simulated_at: float
    prompt_tokens: int = 0
    output_tokens: int = 0
    queued: float | None = None
    prefill_start: float | None = None
    prefill_end: float | None = None
    handed_over: float | None = None
    cached_tokens: int = 0
    preemptions: int = 0
    drafted: int = 0
    accepted: int = 0
    fault: str | None = None
    outcome: str = "running"
    ended: float | None = None
    chunks: list[Sent] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The record as plain values; each chunk is [planned, actual, first, tokens]."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "chunks"}
        return {**values, "chunks": [[c.planned, c.actual, c.first, c.tokens] for c in self.chunks]}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Truth:
        """The record from plain values."""
        values = dict(plain)
        values["chunks"] = [Sent(*chunk) for chunk in plain["chunks"]]
        return cls(**values)


def write_log(truths: Iterable[Truth]) -> bytes:
    """JSON lines, one request a line."""
    return b"".join(json.dumps(truth.plain()).encode() + b"\n" for truth in truths)


def read_log(data: bytes) -> list[Truth]:
    """What `write_log` wrote."""
    return [Truth.from_plain(json.loads(line)) for line in data.splitlines() if line]
