"""The generated model's weights: random matrices of the usual size around a head that makes answers predictable.

The residual stream is dominated by the embedding of the last token, and the output head maps each word's embedding
to the next word of a fixed cycle. Greedy decoding therefore walks the cycle: it never ends early, never repeats
itself within 5,625 tokens, and every token can be foretold. The layers between do all their work, and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import vocabulary, word_cycle

Matrix = NDArray[np.float32]

LOGIT = 40.0
"""Logit of the right next word; the others stay below about 12 (random products of 1,024-wide vectors)."""

RESIDUAL = 0.15
"""Size of what all layers together add to the residual stream, against the embedding's 1."""


def tensors(spec: ModelSpec) -> Iterator[tuple[str, Matrix]]:
    """GGUF name and values of every tensor, one at a time; matrices are rows of outputs by columns of inputs."""
    embedding = np.random.default_rng([spec.seed, 0]).standard_normal((spec.vocabulary, spec.hidden), np.float32)
    yield "token_embd.weight", embedding
    yield "output.weight", _head(spec, embedding)
    yield "output_norm.weight", np.ones(spec.hidden, np.float32)
    for layer in range(spec.layers):
        yield from _layer(spec, layer)


def _head(spec: ModelSpec, embedding: Matrix) -> Matrix:
    scale = np.float32(LOGIT / spec.hidden)
    cycle = np.array(word_cycle(spec.seed, spec.vocabulary))
    head = np.zeros_like(embedding)
    head[np.roll(cycle, -1)] = embedding[cycle] * scale
    # Bytes, role names and template tokens lead to some word as well, so that an answer starts anywhere.
    others = np.setdiff1d(np.arange(vocabulary(spec.vocabulary).used), cycle)
    targets = np.random.default_rng([spec.seed, 2]).choice(cycle, size=len(others))
    np.add.at(head, targets, embedding[others] * scale)
    return head


def _layer(spec: ModelSpec, layer: int) -> Iterator[tuple[str, Matrix]]:
    rng = np.random.default_rng([spec.seed, 3, layer])
    wide, narrow = spec.heads * spec.head_size, spec.kv_heads * spec.head_size
    damped = RESIDUAL / float(np.sqrt(spec.layers))
    prefix = f"blk.{layer}."
    for name in ("attn_norm", "ffn_norm"):
        yield f"{prefix}{name}.weight", np.ones(spec.hidden, np.float32)
    for name, outputs, inputs, size in (
        ("attn_q", wide, spec.hidden, 1.0),
        ("attn_k", narrow, spec.hidden, 1.0),
        ("attn_v", narrow, spec.hidden, 1.0),
        ("attn_output", spec.hidden, wide, damped),
        ("ffn_gate", spec.feed_forward, spec.hidden, 1.0),
        ("ffn_up", spec.feed_forward, spec.hidden, 1.0),
        ("ffn_down", spec.hidden, spec.feed_forward, damped),
    ):
        matrix = rng.standard_normal((outputs, inputs), np.float32)
        yield f"{prefix}{name}.weight", matrix * np.float32(size / np.sqrt(inputs))
