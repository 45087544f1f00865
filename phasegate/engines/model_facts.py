"""A model's facts for the roofline, read from a GGUF file, a Hugging Face ``config.json``, or a YAML file.

A GGUF file names every tensor, so its weights and bytes are counted. A ``config.json`` gives the shape, from which the
weights are worked out for architectures whose layers are known here; others are refused, with the YAML as the way out.
Norms and biases are left out: less than a thousandth of the weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phasegate.gate.roofline import ModelFacts, RooflineError
from phasegate.strict_yaml import Located, SettingsError, load_mapping, text, whole_number

KV_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "fp8": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of one number in the KV cache, by its format; llama.cpp's blocks of 32 have a scale of 2 bytes."""

GATED = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "gemma", "gemma2", "gemma3_text",
    "phi3", "granite", "olmo2",
)  # fmt: skip
"""``model_type`` of architectures with grouped-query attention and three matrices in each feed-forward part."""

WIDTHS = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
FORMATS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}

SCALES = 2.5 / 128
"""Bytes for each weight that 4-bit formats spend on scales and zero points, in groups of 128."""


def read_model(path: Path, kv_format: str | None = None, dtype: str | None = None) -> ModelFacts:
    """The facts in a ``.gguf``, a ``.json`` (or the folder with a ``config.json``), or a ``.yaml`` file.

    Args:
        kv_format: number format of the KV cache, one of `KV_BYTES`; None for 16 bits.
        dtype: one of `WIDTHS` that an engine turns the weights of a ``config.json`` into; None leaves them.

    Raises:
        SettingsError: one line naming the file, what is wrong and the remedy.
    """
    if kv_format is not None and kv_format not in KV_BYTES:
        raise SettingsError(f"KV cache format {kv_format!r} is unknown; known: {', '.join(KV_BYTES)}")
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise SettingsError(f"no model file {path}; give a .gguf file, a config.json, or a YAML file with the facts")
    kv_bytes = KV_BYTES[kv_format or "f16"]
    try:
        if path.suffix == ".gguf":
            return _from_gguf(path, kv_bytes)
        source_text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return _from_config(_as_held(json.loads(source_text), dtype), path, kv_bytes)
        return _from_yaml(load_mapping(source_text, str(path)), kv_format)
    except (RooflineError, UnicodeDecodeError, json.JSONDecodeError, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None


def stored_dtype(folder: Path) -> str | None:
    """Number format of the weights in a model's folder, one of `WIDTHS`.

    None where its ``config.json`` does not tell, and where they are quantized: how an engine keeps those is its own
    business.
    """
    try:
        given = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        inner = given.get("text_config") or {}
        if any(one.get(name) for one in (given, inner) for name in ("quantization_config", "compression_config")):
            return None
        named = [one.get(name) for one in (inner, given) for name in ("torch_dtype", "dtype")]
    except (OSError, ValueError, AttributeError):
        return None
    found = next((str(one) for one in named if one), None)
    return found if found in WIDTHS else None


def _as_held(given: Any, dtype: str | None) -> Any:
    """A ``config.json`` whose weights an engine turns into another format."""
    if dtype is None or not isinstance(given, dict):
        return given
    inner = given.get("text_config")
    return {
        **given,
        **({"text_config": {**inner, "torch_dtype": dtype}} if isinstance(inner, dict) else {}),
        "torch_dtype": dtype,
    }


def _from_gguf(path: Path, kv_bytes: float) -> ModelFacts:
    """Counted from the tensors."""
    try:
        import gguf
    except ImportError:
        raise SettingsError(
            f"{path}: reading it needs the package gguf, which is not installed: pip install 'phasegate[local]'"
        ) from None
    try:
        reader: Any = gguf.GGUFReader(str(path))
        parts = reader.fields.get("split.count")
        if parts is not None and int(parts.contents()) > 1:
            raise SettingsError(
                f"{path}: one of {int(parts.contents())} parts of a model; put them together with llama-gguf-split "
                "--merge, or give the facts in a YAML file"
            )
        architecture = str(reader.fields["general.architecture"].contents())

        def fact(name: str, default: int | None = None) -> int:
            found = reader.fields.get(f"{architecture}.{name}")
            if found is None and default is not None:
                return default
            return int(found.contents())

        layers, heads = fact("block_count"), fact("attention.head_count")
        kv_heads = fact("attention.head_count_kv", heads)
        head_size = fact("attention.key_length", fact("embedding_length") // heads)
        experts, experts_used = fact("expert_count", 0), fact("expert_used_count", 0)
        sizes = _tensor_sizes(reader)
    except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        raise SettingsError(f"{path}: not a GGUF file of a model that is understood ({error})") from None
    weights = sizes["body"][0] + sizes["head"][0] + sizes["experts"][0]
    return ModelFacts(
        name=path.stem,
        body=sizes["body"][0],
        head=sizes["head"][0],
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        weight_bytes=(sizes["body"][1] + sizes["head"][1] + sizes["experts"][1]) / weights,
        kv_bytes=kv_bytes,
        expert=sizes["experts"][0] // experts if experts else 0,
        experts=experts,
        experts_used=experts_used,
        format=_usual_format(reader),
        source=f"tensors of {path.name}",
    )


def _tensor_sizes(reader: Any) -> dict[str, tuple[int, int]]:
    """Weights and bytes of matrices: of the body, the output head, and all experts.

    The embedding is a table from which single rows are taken; where there is no output head, it is the head as well.
    """
    sums = {"body": [0, 0], "head": [0, 0], "experts": [0, 0], "table": [0, 0]}
    for tensor in reader.tensors:
        shape = [int(side) for side in tensor.shape]
        if sum(side > 1 for side in shape) < 2:
            continue
        kind = {"token_embd.weight": "table", "output.weight": "head"}.get(tensor.name, "body")
        kind = "experts" if "_exps." in tensor.name else kind
        sums[kind][0] += int(tensor.n_elements)
        sums[kind][1] += int(tensor.n_bytes)
    if not sums["head"][0]:
        sums["head"] = sums["table"]
    return {name: (weights, size) for name, (weights, size) in sums.items()}


def _usual_format(reader: Any) -> str:
    """The format that most of the weights have."""
    shares: dict[str, int] = {}
    for tensor in reader.tensors:
        name = str(tensor.tensor_type.name).lower()
        shares[name] = shares.get(name, 0) + int(tensor.n_elements)
    return max(shares, key=lambda name: shares[name])


def _from_config(given: Mapping[str, Any], path: Path, kv_bytes: float) -> ModelFacts:
    """Worked out from the shape."""
    config = given.get("text_config") if isinstance(given.get("text_config"), dict) else given
    assert isinstance(config, Mapping)
    kind = config.get("model_type")
    if kind not in GATED:
        raise SettingsError(
            f"{path}: the layers of model_type {kind!r} are not known here; known: {', '.join(GATED)}; "
            "give the facts in a YAML file instead (docs/explanation/roofline.md)"
        )

    def fact(*names: str, default: int | None = None) -> int:
        value = next((config[name] for name in names if config.get(name) is not None), default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise SettingsError(f"{path}: {names[0]} is {value!r}; it must be a whole number")
        return value

    hidden, layers = fact("hidden_size"), fact("num_hidden_layers")
    heads = fact("num_attention_heads")
    kv_heads = fact("num_key_value_heads", default=heads)
    head_size = fact("head_dim", default=hidden // max(heads, 1))
    attention = hidden * head_size * (2 * heads + 2 * kv_heads)
    experts = fact("num_local_experts", "num_experts", default=0)
    wide = fact("intermediate_size")
    shared = fact("shared_expert_intermediate_size", default=0)
    dense = 3 * hidden * (shared if experts else wide) + (hidden * experts if experts else 0)
    body, head = layers * (attention + dense), hidden * fact("vocab_size")
    expert = layers * 3 * hidden * fact("moe_intermediate_size", default=wide) if experts else 0
    width, number_format, source = _width(given, config, path)
    weights = body + experts * expert
    return ModelFacts(
        name=_config_name(given, path),
        body=body,
        head=head,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        # Quantizing leaves the output head as it is.
        weight_bytes=(weights * width[0] + head * width[1]) / (weights + head),
        kv_bytes=kv_bytes,
        expert=expert,
        experts=experts,
        experts_used=fact("num_experts_per_tok", default=0) if experts else 0,
        format=number_format,
        source=source,
    )


def _width(given: Mapping[str, Any], config: Mapping[str, Any], path: Path) -> tuple[tuple[float, float], str, str]:
    """Bytes of a weight in the body and in the head, the format of the arithmetic, and where that is from."""
    named = str(config.get("torch_dtype") or config.get("dtype") or given.get("torch_dtype") or given.get("dtype"))
    if named not in WIDTHS:
        raise SettingsError(f"{path}: torch_dtype is {named!r}; known: {', '.join(WIDTHS)}")
    plain, number_format = WIDTHS[named], FORMATS[named]
    quantization = given.get("quantization_config")
    if not isinstance(quantization, dict):
        return (plain, plain), number_format, f"the shape in {path.name}"
    method = str(quantization.get("quant_method"))
    source = f"the shape in {path.name}, quantized with {method}"
    if method == "fp8":
        return (1.0, plain), "fp8", source
    if method in ("awq", "gptq") and quantization.get("bits") in (4, 8):
        # Weights alone are quantized; the arithmetic is done in 16 bits.
        return (quantization["bits"] / 8 + SCALES, plain), number_format, source
    raise SettingsError(
        f"{path}: quant_method {method!r} is not known here; known: fp8, awq, gptq; give the facts in a YAML file"
    )


def _config_name(given: Mapping[str, Any], path: Path) -> str:
    named = given.get("_name_or_path")
    return str(named).rstrip("/").split("/")[-1] if named else path.resolve().parent.name


_KEYS = (
    "name", "weights", "head", "layers", "heads", "kv_heads", "head_size", "weight_bytes", "kv_bytes", "expert",
    "experts", "experts_used", "format",
)  # fmt: skip


def _from_yaml(given: Located, kv_format: str | None) -> ModelFacts:
    """As given: ``weights`` are those that every token is multiplied with, the output head included, experts not."""
    given.refuse_unknown(_KEYS)
    for key in ("weights", "layers", "heads", "head_size", "weight_bytes"):
        given.require(key)
    count, number = whole_number(1), "a whole number from 1 on"
    heads = given.take("heads", count, 1, wanted=number)
    head = given.take("head", whole_number(0), 0, wanted="a whole number")
    return ModelFacts(
        name=given.take("name", text, given.source, wanted="a text"),
        body=given.take("weights", count, 1, wanted=number) - head,
        head=head,
        layers=given.take("layers", count, 1, wanted=number),
        heads=heads,
        kv_heads=given.take("kv_heads", count, heads, wanted=number),
        head_size=given.take("head_size", count, 1, wanted=number),
        weight_bytes=given.take("weight_bytes", _size, 2.0, wanted="bytes, such as 2 or 0.52"),
        kv_bytes=KV_BYTES[kv_format] if kv_format else given.take("kv_bytes", _size, 2.0, wanted="bytes, such as 2"),
        expert=given.take("expert", whole_number(0), 0, wanted="a whole number"),
        experts=given.take("experts", whole_number(0), 0, wanted="a whole number"),
        experts_used=given.take("experts_used", whole_number(0), 0, wanted="a whole number"),
        format=given.take("format", text, "bf16", wanted="a number format such as bf16"),
        source=given.source,
    )


def _size(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise TypeError
    return float(value)
