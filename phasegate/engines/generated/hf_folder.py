"""Writing a generated model as a folder of the Hugging Face form: config, tokenizer and weights in bfloat16.

vLLM, SGLang and Transformers read it. The weights are those of the GGUF file of the same seed and shape, so every
engine writes the same answers. The three formats are plain (two are JSON, the third is a JSON header before raw
numbers), so no package of theirs is needed to write them.

Sources: the safetensors format (its README, "Format"); tokenizer.json as the ``tokenizers`` library saves it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import CHAT_TEMPLATE, vocabulary
from phasegate.engines.generated.weights import Matrix, tensors

ROPE_BASE = 10_000.0

_ONE_OF_A_KIND = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output.weight": "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
}
_IN_A_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_hf(spec: ModelSpec, folder: Path) -> None:
    """Write the model into an existing folder. Equal specs give equal bytes."""
    _write_json(folder / "config.json", _config(spec))
    _write_json(folder / "generation_config.json", _generation(spec))
    _write_json(folder / "tokenizer.json", _tokenizer(spec))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(spec))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    _write_weights(folder / "model.safetensors", spec)


def hf_name(gguf_name: str) -> str:
    """The name that a tensor of a GGUF file has in the Hugging Face form."""
    if gguf_name in _ONE_OF_A_KIND:
        return _ONE_OF_A_KIND[gguf_name]
    _, layer, part, last = gguf_name.split(".")
    return f"model.layers.{layer}.{_IN_A_LAYER[part]}.{last}"


def rotated_halves(matrix: Matrix, heads: int) -> Matrix:
    """Rows of a query or key matrix in the order of the Hugging Face form.

    llama.cpp rotates neighbouring rows of a head together, Transformers row i of the first half with row i of the
    second; the same model has its rows in another order there.
    """
    outputs, inputs = matrix.shape
    pairs = matrix.reshape(heads, outputs // heads // 2, 2, inputs)
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(outputs, inputs))


def as_bfloat16(matrix: Matrix) -> NDArray[np.uint16]:
    """The upper halves of single-precision numbers, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(matrix).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _write_weights(path: Path, spec: ModelSpec) -> None:
    heads = {"attn_q": spec.heads, "attn_k": spec.kv_heads}
    found: dict[str, NDArray[np.uint16]] = {}
    for name, matrix in tensors(spec):
        part = name.split(".")[-2]
        ordered = rotated_halves(matrix, heads[part]) if part in heads else matrix
        found[hf_name(name)] = as_bfloat16(ordered)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, values in found.items():
        start, end = end, end + values.nbytes
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers behind it are aligned
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for values in found.values():
            file.write(values.astype("<u2", copy=False).tobytes())


def _config(spec: ModelSpec) -> dict[str, Any]:
    special = vocabulary(spec.vocabulary).special
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": spec.hidden,
        "intermediate_size": spec.feed_forward,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_size,
        "vocab_size": spec.vocabulary,
        "max_position_embeddings": spec.context,
        "rms_norm_eps": 1e-5,
        "rope_theta": ROPE_BASE,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": special["<|bos|>"],
        "eos_token_id": special["<|eos|>"],
        "pad_token_id": special["<|pad|>"],
        "torch_dtype": "bfloat16",
        "dtype": "bfloat16",
    }


def _generation(spec: ModelSpec) -> dict[str, Any]:
    special = vocabulary(spec.vocabulary).special
    return {
        "bos_token_id": special["<|bos|>"],
        "eos_token_id": [special["<|eos|>"], special["<|im_end|>"]],
        "pad_token_id": special["<|pad|>"],
        "do_sample": False,
    }


def _tokenizer_config(spec: ModelSpec) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|bos|>",
        "eos_token": "<|eos|>",
        "pad_token": "<|pad|>",
        "model_max_length": spec.context,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


def _tokenizer(spec: ModelSpec) -> dict[str, Any]:
    """A byte-level BPE. The padding of the vocabulary is left out: no text leads to it, and no answer holds it."""
    words = vocabulary(spec.vocabulary)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": number, "content": name, **plain} for name, number in words.special.items()],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {
                token: number for number, token in enumerate(words.tokens[: words.used]) if token not in words.special
            },
            "merges": [list(pair) for pair in words.merges],
        },
    }


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
