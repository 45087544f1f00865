"""What usually helps a phase that got slower, in the order worth trying, each with what it cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing to try.

    Attributes:
        name: in the field's own words.
        cannot: its limit, in one line.
    """

    name: str
    cannot: str


LEVERS: Mapping[str, tuple[Lever, ...]] = {
    "prefill": (
        Lever("prompt (prefix) caching", "helps only tokens shared with an earlier prompt; decode stays as it is"),
        Lever("shorter prompts", "changes what the model is asked; the cost of each remaining token stays"),
        Lever("FlashAttention or another fused attention kernel", "gains little on short prompts"),
        Lever("chunked prefill", "keeps other streams moving meanwhile; a lone request's TTFT does not improve"),
        Lever("more compute (larger batch of the prompt, tensor parallelism)", "does not help where prompts queue"),
    ),
    "decode": (
        Lever("fewer output tokens", "changes the answer; the time per token stays as it is"),
        Lever("speculative decoding or multi-token prediction", "pays only while drafts are accepted"),
        Lever("quantized weights or KV cache", "changes the model's output; prefill, bound by compute, gains less"),
        Lever("a smaller model", "is another model; its quality must be judged apart"),
        Lever("more memory bandwidth", "does not help prefill, which is bound by compute"),
    ),
    "throughput": (
        Lever("continuous batching", "raises tokens per second over all streams; one stream gets no faster"),
        Lever("more replicas", "divides the queue; a lone request stays as it is"),
    ),
}  # fmt: skip
"""Phase -> levers. Decode reads all weights for each token, so it is bound by memory bandwidth; prefill computes all
prompt tokens at once, so it is bound by arithmetic. ``throughput`` is for many requests at a time."""


def lever_line(phase: str) -> str:
    """The first levers for a phase, in one sentence; for ``both`` one of each phase."""
    if phase in LEVERS:
        names = "; ".join(f"{lever.name} ({lever.cannot})" for lever in LEVERS[phase][:2])
        return f"levers for {phase}: {names}"
    prefill, decode = LEVERS["prefill"][0], LEVERS["decode"][0]
    return f"levers: {prefill.name} for prefill ({prefill.cannot}); {decode.name} for decode ({decode.cannot})"
