"""Which layers of a model look at the last tokens only, as its ``config.json`` or its GGUF file says.

A sliding window keeps a layer's KV cache short and its attention cheap. What a file leaves out is what the libraries
that read it take then: Transformers' configuration classes for ``config.json``, llama.cpp for GGUF. A window of an
architecture whose layers are not known is refused: counted as none, it would make floors that a server can undercut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from phasegate.core.settings_file import SettingsError

FULL, SLIDING = "full_attention", "sliding_attention"
"""Words of ``layer_types``."""

PATTERNS = {"gemma2": 2, "gemma3_text": 6}
"""``model_type`` -> of how many layers the last one looks at everything, where the file gives no pattern."""

PERIOD_KEYS = ("sliding_window_pattern", "_sliding_window_pattern")

EVERY_LAYER = ("mistral", "mixtral", "phi3")
"""``model_type`` whose window, where there is one, is every layer's."""

FIRST_FULL = ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe")
"""``model_type`` whose first ``max_window_layers`` look at everything, and whose window must be switched on."""

USUAL_WINDOW = {"mistral": 4096, "gemma2": 4096, "gemma3_text": 4096, **dict.fromkeys(FIRST_FULL, 4096)}
"""``model_type`` -> the window where the file has no such key; ``null`` is none."""

USUAL_FIRST_FULL = 28
"""``max_window_layers`` where the file has no such key."""

GGUF_PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}
"""Architecture -> pattern where a GGUF file has a window and no pattern."""

GGUF_WITHOUT = ("phi3",)
"""Architectures whose window llama.cpp reads and does not use."""

REMEDY = "give the facts in a YAML file, with window and full_layers (docs/explanation/roofline.md)"


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window.

    Attributes:
        tokens: that a layer with the window looks at, the newest among them; 0 where no layer has one.
        full_layers: layers that look at all tokens nevertheless.
    """

    tokens: int = 0
    full_layers: int = 0


NO_WINDOW = Window()


def window_of_config(config: Mapping[str, Any], layers: int, source: str) -> Window:
    """The window in the text's part of a ``config.json``.

    Args:
        layers: how many there are.
        source: the file, for messages.

    Raises:
        SettingsError: a window that is not understood; one line.
    """
    kind = str(config.get("model_type"))
    if not config.get("use_sliding_window", kind not in FIRST_FULL):
        return NO_WINDOW
    tokens = config["sliding_window"] if "sliding_window" in config else USUAL_WINDOW.get(kind)
    full = _full_layers(config, kind, layers, source, has_window=tokens is not None)
    if full == layers:
        return NO_WINDOW
    if not _is_count(tokens, least=1):
        raise SettingsError(f"{source}: sliding_window is {tokens!r}; it must be a whole number from 1 on; {REMEDY}")
    return Window(tokens, full)


def _full_layers(config: Mapping[str, Any], kind: str, layers: int, source: str, *, has_window: bool) -> int:
    """How many layers look at everything."""
    types = config.get("layer_types")
    if types is not None:
        return _full_types(types, layers, source)
    if not has_window:
        return layers
    key = next((one for one in PERIOD_KEYS if config.get(one) is not None), None)
    period = config[key] if key is not None else PATTERNS.get(kind)
    if period is not None:
        if not _is_count(period, least=1):
            raise SettingsError(f"{source}: {key} is {period!r}; it must be a whole number from 1 on; {REMEDY}")
        return layers // period
    if kind in FIRST_FULL:
        first = config.get("max_window_layers", USUAL_FIRST_FULL)
        if not _is_count(first, least=0):
            raise SettingsError(f"{source}: max_window_layers is {first!r}; it must be a whole number; {REMEDY}")
        return min(first, layers)
    if kind in EVERY_LAYER:
        return 0
    raise SettingsError(
        f"{source}: sliding_window is {config.get('sliding_window')!r}, but which layers of model_type {kind!r} have "
        f"it is not known here; {REMEDY}"
    )


def _full_types(types: object, layers: int, source: str) -> int:
    if not isinstance(types, list) or len(types) != layers:
        said = f"{len(types)} layers" if isinstance(types, list) else repr(types)
        raise SettingsError(f"{source}: layer_types has {said}, num_hidden_layers is {layers}; both must agree")
    other = next((one for one in types if one not in (FULL, SLIDING)), None)
    if other is not None:
        raise SettingsError(f"{source}: layer_types has {other!r}; known: {FULL}, {SLIDING}; {REMEDY}")
    return types.count(FULL)


def window_of_gguf(
    architecture: str, layers: int, tokens: int | None, pattern: int | Sequence[bool] | None, source: str
) -> Window:
    """The window in a GGUF file, as llama.cpp takes it.

    Args:
        tokens: of the key ``attention.sliding_window``; None where it is missing.
        pattern: of the key ``attention.sliding_window_pattern``: true for each layer with the window, or of how many
            layers the last one has none (0: all have it); None where it is missing.

    Raises:
        SettingsError: a window whose layers are not known here; one line.
    """
    if not tokens or architecture in GGUF_WITHOUT:
        return NO_WINDOW
    pattern = GGUF_PERIODS.get(architecture) if pattern is None else pattern
    if pattern is None:
        raise SettingsError(
            f"{source}: has a sliding window of {tokens} tokens, but which layers of {architecture!r} have it is not "
            f"known here; {REMEDY}"
        )
    if isinstance(pattern, int):
        full = layers // pattern if pattern else 0
    elif pattern:
        full = sum(not pattern[layer % len(pattern)] for layer in range(layers))
    else:
        full = layers
    return NO_WINDOW if full == layers else Window(tokens, full)


def _is_count(value: object, least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
