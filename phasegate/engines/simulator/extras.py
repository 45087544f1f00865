"""What an answer carries beside its text: reasoning before it, and the server's own timings at its end. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phasegate.engines.simulator.config import Reasoning, SimulatorConfig
from phasegate.engines.simulator.truth import Truth


@dataclass(frozen=True, slots=True)
class Part:
    """Some neighbouring tokens of an answer that go out in one event.

    Attributes:
        first: index of the first one.
        tokens: how many.
        reasoning: whether they are reasoning.
    """

    first: int
    tokens: int
    reasoning: bool


@dataclass(frozen=True, slots=True)
class Extras:
    """The extras of one answer.

    Attributes:
        reasoning_tokens: how many of its first tokens are reasoning.
        streamed: whether those are sent.
        timings: whether it ends with the server's timings.
    """

    reasoning_tokens: int = 0
    streamed: bool = True
    timings: bool = False

    @classmethod
    def of(cls, config: SimulatorConfig, *, chat: bool) -> Extras:
        """Those that the settings ask for; reasoning has a place in the chat format only."""
        reasoning = config.reasoning_tokens if chat else 0
        return cls(reasoning, config.reasoning is Reasoning.STREAMED, config.report_timings)

    def parts(self, first: int, tokens: int) -> Iterator[Part]:
        """The events of some neighbouring tokens: reasoning and text never share one, and what is hidden has none."""
        end, border = first + tokens, self.reasoning_tokens
        if first < border and self.streamed:
            yield Part(first, min(end, border) - first, reasoning=True)
        if end > border:
            start = max(first, border)
            yield Part(start, end - start, reasoning=False)

    def reasoned(self, written: int) -> int:
        """How many of the tokens written so far are reasoning."""
        return min(written, self.reasoning_tokens)

    def timings_of(self, truth: Truth, written: int) -> dict[str, Any] | None:
        """The server's own timings in llama.cpp's words, in milliseconds; None where they are not asked for."""
        if not self.timings or truth.prefill_start is None or truth.prefill_end is None:
            return None
        moments = [chunk.planned for chunk in truth.chunks]
        decode = moments[-1] - moments[0] if moments else 0.0
        told: dict[str, Any] = {
            "cache_n": truth.cached_tokens,
            "prompt_n": truth.prompt_tokens - truth.cached_tokens,
            "prompt_ms": (truth.prefill_end - truth.prefill_start) * 1e3,
            "predicted_n": written,
            "predicted_ms": decode * 1e3,
        }
        if truth.drafted:
            told.update(draft_n=truth.drafted, draft_n_accepted=truth.accepted)
        return told
