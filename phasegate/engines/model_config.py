"""A model's facts in a Hugging Face ``config.json``: its shape, from which the weights are worked out.

That is possible for architectures whose layers are known here. Others are refused, and so is a file in which something
is missing or odd: a wrong count of weights looks like a right one. Norms and biases are left out: less than a
thousandth of the weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegate.core.settings_file import SettingsError
from phasegate.diagnose.roofline import ModelFacts
from phasegate.engines.model_window import window_of_config

MIXTURES = ("mixtral", "qwen2_moe", "qwen3_moe")
"""``model_type`` of architectures whose feed-forward part is a mixture of experts."""

GATED = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "gemma", "gemma2", "gemma3_text",
    "phi3", "granite", "olmo2",
)  # fmt: skip
"""``model_type`` of architectures with grouped-query attention and three matrices in each feed-forward part."""

WIDTHS = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
FORMATS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}

QUANTIZATIONS = ("quantization_config", "compression_config")
"""Keys under which a file says that its weights are quantized."""

SCALES = 2.5 / 128
"""Bytes for each weight that 4-bit formats spend on scales and zero points, in groups of 128."""

IN_YAML = "give the facts in a YAML file instead (docs/explanation/roofline.md)"


def stored_dtype(folder: Path) -> str | None:
    """Number format of the weights in a model's folder, one of `WIDTHS`.

    None where its ``config.json`` does not tell, and where they are quantized: how an engine keeps those is its own
    business.
    """
    try:
        given = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        inner = given.get("text_config") or {}
        if any(one.get(name) for one in (given, inner) for name in QUANTIZATIONS):
            return None
        named = [one.get(name) for one in (inner, given) for name in ("torch_dtype", "dtype")]
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    found = next((str(one) for one in named if one), None)
    return found if found in WIDTHS else None


def read_config(given: object, path: Path, kv_bytes: float, dtype: str | None) -> ModelFacts:
    """The facts in a ``config.json``.

    Args:
        given: what the file holds.
        kv_bytes: bytes of one number in the KV cache.
        dtype: one of `WIDTHS` that an engine turns the weights into; None leaves them.

    Raises:
        SettingsError: something is missing, odd or not known here; one line.
    """
    if not isinstance(given, dict):
        what = {list: "a list", type(None): "null"}.get(type(given), repr(given))
        raise SettingsError(f"{path}: holds {what}; a config.json is an object with model_type and the model's shape")
    held = _as_held(given, dtype)
    inner = held.get("text_config") or held
    if not isinstance(inner, dict):
        raise SettingsError(f"{path}: text_config is {inner!r}; it must be an object")
    kind = inner.get("model_type")
    if kind not in GATED:
        raise SettingsError(
            f"{path}: the layers of model_type {kind!r} are not known here; known: {', '.join(GATED)}; {IN_YAML}"
        )
    return _worked_out(held, _Shape(inner, path), kv_bytes)


def _as_held(given: dict[str, Any], dtype: str | None) -> dict[str, Any]:
    """A ``config.json`` whose weights an engine turns into another format."""
    if dtype is None:
        return given
    inner = given.get("text_config")
    return {
        **given,
        **({"text_config": {**inner, "torch_dtype": dtype}} if inner and isinstance(inner, dict) else {}),
        "torch_dtype": dtype,
    }


@dataclass(frozen=True, slots=True)
class _Shape:
    """The text's part of a ``config.json``, read with care.

    Attributes:
        config: that part.
        path: of the file.
    """

    config: Mapping[str, Any]
    path: Path

    def fact(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """The first of these keys that has a value.

        Raises:
            SettingsError: none has one and there is no default, or it is no such number.
        """
        name = next((one for one in names if self.config.get(one) is not None), names[0])
        value = self.config.get(name)
        value = default if value is None else value
        if value is None:
            raise self.refusal(f"{name} is missing; add it, or {IN_YAML}")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.refusal(f"{name} is {value!r}; it must be a whole number from {least} on")
        return value

    def parts(self, whole: str, name: str, default: int | None = None) -> int:
        """A number that the one of another key must be a multiple of."""
        value, of = self.fact(name, default=default), self.fact(whole)
        if of % value:
            raise self.refusal(f"{whole} is {of}, which {name} = {value} does not divide")
        return value

    def refusal(self, what: str) -> SettingsError:
        """The error that says this of the file."""
        return SettingsError(f"{self.path}: {what}")

    def experts(self) -> tuple[int, int]:
        """Experts in a layer, and those that a token takes; none of a model that is no mixture."""
        kind, names = self.config["model_type"], ("num_local_experts", "num_experts")
        if kind not in MIXTURES:
            if any(self.config.get(name) for name in names):
                raise self.refusal(f"model_type {kind!r} with experts is not known here; {IN_YAML}")
            return 0, 0
        if self.config.get("mlp_only_layers") or self.config.get("decoder_sparse_step") not in (None, 1):
            raise self.refusal(f"experts in some of the layers only are not known here; {IN_YAML}")
        ordered = names if kind == "mixtral" else names[::-1]
        count, used = self.fact(*ordered), self.fact("num_experts_per_tok")
        if used > count:
            raise self.refusal(f"num_experts_per_tok is {used}; there are only {count} experts")
        return count, used


def _worked_out(given: Mapping[str, Any], shape: _Shape, kv_bytes: float) -> ModelFacts:
    """The facts from the shape."""
    hidden, layers = shape.fact("hidden_size"), shape.fact("num_hidden_layers")
    heads = shape.fact("num_attention_heads")
    named = shape.config.get("head_dim") is not None
    head_size = shape.fact("head_dim") if named else hidden // shape.parts("hidden_size", "num_attention_heads")
    kv_heads = shape.parts("num_attention_heads", "num_key_value_heads", default=heads)
    attention = hidden * head_size * (2 * heads + 2 * kv_heads)
    experts, experts_used = shape.experts()
    wide = shape.fact("intermediate_size")
    shared = shape.fact("shared_expert_intermediate_size", default=0, least=0)
    dense = 3 * hidden * (shared if experts else wide) + hidden * experts
    body, head = layers * (attention + dense), hidden * shape.fact("vocab_size")
    expert = layers * 3 * hidden * shape.fact("moe_intermediate_size", default=wide) if experts else 0
    width, number_format, source = _width(given, shape)
    weights = body + experts * expert
    window = window_of_config(shape.config, layers, str(shape.path))
    return ModelFacts(
        name=_name(given, shape.path),
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
        experts_used=experts_used,
        window=window.tokens,
        full_layers=window.full_layers,
        format=number_format,
        source=source,
    )


def _width(given: Mapping[str, Any], shape: _Shape) -> tuple[tuple[float, float], str, str]:
    """Bytes of a weight in the body and in the head, the format of the arithmetic, and where that is from."""
    config, name = shape.config, shape.path.name
    named = str(config.get("torch_dtype") or config.get("dtype") or given.get("torch_dtype") or given.get("dtype"))
    if named not in WIDTHS:
        raise shape.refusal(f"torch_dtype is {named!r}; known: {', '.join(WIDTHS)}")
    plain, number_format = WIDTHS[named], FORMATS[named]
    found = [(key, one[key]) for one in (given, config) for key in QUANTIZATIONS if one.get(key) is not None]
    if not found:
        return (plain, plain), number_format, f"the shape in {name}"
    key, quantization = found[0]
    if not isinstance(quantization, dict):
        raise shape.refusal(f"{key} is {quantization!r}; it must be an object with quant_method; {IN_YAML}")
    method = quantization.get("quant_method")
    source = f"the shape in {name}, quantized with {method}"
    if method == "fp8":
        return (1.0, plain), "fp8", source
    if method not in ("awq", "gptq"):
        raise shape.refusal(f"quant_method {method!r} is not known here; known: fp8, awq, gptq; {IN_YAML}")
    bits = quantization.get("bits")
    if isinstance(bits, bool) or bits not in (4, 8):
        raise shape.refusal(f"bits of {key} is {bits!r}; {method} needs 4 or 8; {IN_YAML}")
    # Weights alone are quantized; the arithmetic is done in 16 bits.
    return (bits / 8 + SCALES, plain), number_format, source


def _name(given: Mapping[str, Any], path: Path) -> str:
    named = given.get("_name_or_path")
    return str(named).rstrip("/").split("/")[-1] if named else path.resolve().parent.name
