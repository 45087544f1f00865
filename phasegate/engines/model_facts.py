"""A model's facts for the roofline, read from a GGUF file, a Hugging Face ``config.json``, or a YAML file.

This module reads the YAML, which is the way out for everything that `model_gguf` and `model_config` do not understand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from phasegate.core.settings_file import Located, SettingsError, load_mapping, text, whole_number
from phasegate.diagnose.roofline import ModelFacts, RooflineError
from phasegate.engines.formats import KNOWN, known_format
from phasegate.engines.model_config import read_config
from phasegate.engines.model_gguf import read_gguf

KV_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "fp8": 1.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Bytes of one number in the KV cache, by its format; llama.cpp's blocks of 32 have a scale of 2 bytes."""


def read_model(path: Path, kv_format: str | None = None, dtype: str | None = None) -> ModelFacts:
    """The facts in a ``.gguf``, a ``.json`` (or the folder with a ``config.json``), or a ``.yaml`` file.

    Args:
        kv_format: number format of the KV cache, one of `KV_BYTES`; None for 16 bits.
        dtype: one of `model_config.WIDTHS` that an engine turns the weights of a ``config.json`` into; None leaves
            them.

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
            return read_gguf(path, kv_bytes)
        source_text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return read_config(json.loads(source_text), path, kv_bytes, dtype)
        return _from_yaml(load_mapping(source_text, str(path)), kv_format)
    except (RooflineError, UnicodeDecodeError, json.JSONDecodeError, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path}: holds lists or objects in each other, too deep to be read") from None
    except OverflowError:
        raise SettingsError(f"{path}: has a number that is too large to reckon with") from None


_KEYS = (
    "name", "weights", "head", "layers", "heads", "kv_heads", "head_size", "weight_bytes", "kv_bytes", "expert",
    "experts", "experts_used", "window", "full_layers", "format",
)  # fmt: skip


def _from_yaml(given: Located, kv_format: str | None) -> ModelFacts:
    """As given: ``weights`` are those that every token is multiplied with, the output head included, experts not."""
    given.refuse_unknown(_KEYS)
    for key in ("weights", "layers", "heads", "head_size", "weight_bytes"):
        given.require(key)
    count, number = whole_number(1), "a whole number from 1 on"
    heads = given.take("heads", count, 1, wanted=number)
    weights = given.take("weights", count, 1, wanted=number)
    head = given.take("head", whole_number(0), 0, wanted="a whole number")
    if head >= weights:
        raise SettingsError(f"{given.where('head')}: head is {head}, a part of weights, which is {weights}: too few")
    layers = given.take("layers", count, 1, wanted=number)
    window = given.take("window", count, 0, wanted="tokens, a whole number from 1 on")
    if "full_layers" in given.values and not window:
        raise SettingsError(f"{given.where('full_layers')}: full_layers needs window, the tokens of the other layers")
    mixture = [name for name in ("expert", "experts", "experts_used") if given.values.get(name)]
    if len(mixture) not in (0, 3):
        raise SettingsError(f"{given.where(mixture[0])}: expert, experts and experts_used belong together, all above 0")
    return ModelFacts(
        name=given.take("name", text, given.source, wanted="a text"),
        body=weights - head,
        head=head,
        layers=layers,
        heads=heads,
        kv_heads=given.take("kv_heads", count, heads, wanted=number),
        head_size=given.take("head_size", count, 1, wanted=number),
        weight_bytes=given.take("weight_bytes", _size, 2.0, wanted="bytes, such as 2 or 0.52"),
        kv_bytes=KV_BYTES[kv_format] if kv_format else given.take("kv_bytes", _size, 2.0, wanted="bytes, such as 2"),
        expert=given.take("expert", whole_number(0), 0, wanted="a whole number"),
        experts=given.take("experts", whole_number(0), 0, wanted="a whole number"),
        experts_used=given.take("experts_used", whole_number(0), 0, wanted="a whole number"),
        window=window,
        full_layers=given.take(
            "full_layers", whole_number(0, layers), 0, wanted=f"a whole number up to the {layers} layers"
        ),
        format=given.take("format", known_format, "bf16", wanted=f"a number format: {', '.join(KNOWN)}"),
        source=given.source,
    )


def _size(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise TypeError
    return float(value)
