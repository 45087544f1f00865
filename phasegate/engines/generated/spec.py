"""The shape of the generated model, and why it has these proportions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

WEIGHTS = ("q8_0", "f16", "bf16", "f32", "q4_0")
"""Number formats the weights can be stored in."""

FORMAT = 1
"""Part of the file name: raise it when the same spec would give another file."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What decides every byte of a generated model.

    The default has the proportions of large models where they matter for latency: few layers with wide
    feed-forward parts and one small KV head, so that the cache is a small part of what decode reads; and a large
    output head, which decode reads for every token and prefill only for the last. See
    docs/decisions/0002-embedded-model.md for what was measured.

    Attributes:
        seed: of all weights.
        vocabulary: entries of the embedding and of the output head.
        hidden, feed_forward: widths.
        layers: number of transformer layers.
        heads, kv_heads, head_size: attention.
        context: longest context that the file declares.
        weights: one of `WEIGHTS`.
    """

    seed: int = 0
    vocabulary: int = 65_536
    hidden: int = 1024
    feed_forward: int = 8192
    layers: int = 2
    heads: int = 2
    kv_heads: int = 1
    head_size: int = 64
    context: int = 131_072
    weights: str = "q8_0"

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights {self.weights!r} are unknown; known: {', '.join(WEIGHTS)}")
        for name in ("hidden", "feed_forward"):
            # q8_0 and q4_0 store blocks of 32 numbers.
            if getattr(self, name) < 32 or getattr(self, name) % 32:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a multiple of 32")
        if self.layers < 1:
            raise ValueError(f"layers is {self.layers}; it must be at least 1")

    @property
    def parameters(self) -> int:
        """Number of weights in matrices."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        layer = attention + 3 * self.hidden * self.feed_forward
        return 2 * self.vocabulary * self.hidden + self.layers * layer

    @property
    def file_name(self) -> str:
        """Readable name with a digest over every field."""
        canonical = json.dumps({"format": FORMAT, **asdict(self)}, sort_keys=True)
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:8]
        return f"generated-{self.hidden}x{self.layers}-{self.weights}-{digest}.gguf"
