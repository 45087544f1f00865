"""Writing a generated model as a GGUF file, with the writer of the llama.cpp project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from phasegate.engines.base import EngineError
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import CHAT_TEMPLATE, Vocabulary, vocabulary
from phasegate.engines.generated.weights import Matrix, tensors

NORMAL, CONTROL, UNUSED = 1, 3, 5
"""Kinds of tokens in a GGUF vocabulary."""


def write_gguf(spec: ModelSpec, path: Path) -> None:
    """Write the model to a new file. Equal specs give equal bytes.

    Raises:
        EngineError: the package ``gguf`` is not installed.
    """
    try:
        import gguf
    except ImportError:
        raise EngineError(
            "generating a model needs the package gguf, which is not installed: pip install 'phasegate[local]'"
        ) from None
    writer = gguf.GGUFWriter(str(path), "llama")
    _write_shape(writer, spec, gguf)
    _write_tokenizer(writer, vocabulary(spec.vocabulary))
    kind = getattr(gguf.GGMLQuantizationType, spec.weights.upper())
    for name, matrix in tensors(spec):
        _write_tensor(writer, name, matrix, kind, gguf)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_shape(writer: Any, spec: ModelSpec, gguf: Any) -> None:
    label = "ALL_F32" if spec.weights == "f32" else f"MOSTLY_{spec.weights.upper()}"
    writer.add_name(f"phasegate-generated-{spec.hidden}x{spec.layers}")
    writer.add_file_type(getattr(gguf.LlamaFileType, label))
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(spec.context)
    writer.add_embedding_length(spec.hidden)
    writer.add_block_count(spec.layers)
    writer.add_feed_forward_length(spec.feed_forward)
    writer.add_head_count(spec.heads)
    writer.add_head_count_kv(spec.kv_heads)
    writer.add_key_length(spec.head_size)
    writer.add_value_length(spec.head_size)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(spec.head_size)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(spec.vocabulary)


def _write_tokenizer(writer: Any, words: Vocabulary) -> None:
    kinds = [NORMAL] * words.used + [UNUSED] * (len(words.tokens) - words.used)
    for number in words.special.values():
        kinds[number] = CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(list(words.tokens))
    writer.add_token_types(kinds)
    writer.add_token_merges([f"{left} {right}" for left, right in words.merges])
    writer.add_bos_token_id(words.special["<|bos|>"])
    writer.add_eos_token_id(words.special["<|eos|>"])
    writer.add_pad_token_id(words.special["<|pad|>"])
    writer.add_eot_token_id(words.special["<|im_end|>"])
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def _write_tensor(writer: Any, name: str, matrix: Matrix, kind: Any, gguf: Any) -> None:
    """Norms stay in full precision, as in every GGUF file; matrices take the spec's format."""
    if matrix.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
        writer.add_tensor(name, matrix)
    elif kind == gguf.GGMLQuantizationType.F16:
        writer.add_tensor(name, matrix.astype(np.float16))
    else:
        writer.add_tensor(name, gguf.quants.quantize(matrix, kind), raw_dtype=kind)
