"""A model's facts in a GGUF file, which names every tensor: its weights and bytes are counted, not worked out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phasegate.core.settings_file import SettingsError
from phasegate.diagnose.roofline import ModelFacts
from phasegate.engines.model_window import Window, window_of_gguf


def read_gguf(path: Path, kv_bytes: float) -> ModelFacts:
    """The facts in the file.

    Raises:
        SettingsError: it cannot be read, or is a part of a model; one line.
    """
    reader = _reader(path)
    try:
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
        if experts and not experts_used:
            raise ValueError("expert_used_count is missing")
        window = _window(reader, architecture, layers, path)
        sizes = _tensor_sizes(reader)
        weights = sizes["body"][0] + sizes["head"][0] + sizes["experts"][0]
        weight_bytes = (sizes["body"][1] + sizes["head"][1] + sizes["experts"][1]) / weights
    except SettingsError:
        raise
    except (ValueError, KeyError, AttributeError, TypeError, IndexError, ArithmeticError) as error:
        raise _unreadable(path, error) from None
    return ModelFacts(
        name=path.stem,
        body=sizes["body"][0],
        head=sizes["head"][0],
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size,
        weight_bytes=weight_bytes,
        kv_bytes=kv_bytes,
        expert=sizes["experts"][0] // experts if experts else 0,
        experts=experts,
        experts_used=experts_used,
        window=window.tokens,
        full_layers=window.full_layers,
        format=_usual_format(reader),
        source=f"tensors of {path.name}",
    )


def _reader(path: Path) -> Any:
    """The file, opened."""
    try:
        import gguf
    except ImportError:
        raise SettingsError(
            f"{path}: reading it needs the package gguf, which is not installed: pip install 'phasegate[local]'"
        ) from None
    try:
        reader: Any = gguf.GGUFReader(str(path))
        parts = reader.fields.get("split.count")
        count = 1 if parts is None else int(parts.contents())
    except (ValueError, KeyError, AttributeError, TypeError, IndexError) as error:
        raise _unreadable(path, error) from None
    if count > 1:
        raise SettingsError(
            f"{path}: one of {count} parts of a model; put them together with llama-gguf-split --merge, or give the "
            "facts in a YAML file"
        )
    return reader


def _unreadable(path: Path, error: Exception) -> SettingsError:
    return SettingsError(f"{path}: not a GGUF file of a model that is understood ({error})")


def _window(reader: Any, architecture: str, layers: int, path: Path) -> Window:
    tokens = reader.fields.get(f"{architecture}.attention.sliding_window")
    given = reader.fields.get(f"{architecture}.attention.sliding_window_pattern")
    pattern = None if given is None else given.contents()
    plain = [bool(one) for one in pattern] if isinstance(pattern, list) else pattern
    return window_of_gguf(architecture, layers, None if tokens is None else int(tokens.contents()), plain, str(path))


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
