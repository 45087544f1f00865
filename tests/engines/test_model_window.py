"""Which layers look at the last tokens only, by the keys that models' own files have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.engines.model_facts import read_model
from phasegate.engines.model_window import Window, window_of_config, window_of_gguf

MIXED = ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]


@pytest.mark.parametrize(
    ("config", "layers", "expected"),
    [
        ({"model_type": "llama"}, 32, Window()),
        ({"model_type": "llama", "sliding_window": None}, 32, Window()),
        ({"model_type": "mistral", "sliding_window": 4096}, 32, Window(4096)),
        ({"model_type": "mistral", "sliding_window": None}, 32, Window()),
        ({"model_type": "mistral"}, 32, Window(4096)),
        ({"model_type": "mixtral"}, 32, Window()),
        ({"model_type": "phi3", "sliding_window": 2047}, 32, Window(2047)),
        ({"model_type": "gemma2", "sliding_window": 4096}, 42, Window(4096, 21)),
        ({"model_type": "gemma2"}, 5, Window(4096, 2)),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, 62, Window(1024, 10)),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 4}, 26, Window(512, 6)),
        ({"model_type": "gemma3_text", "sliding_window": 512, "sliding_window_pattern": 1}, 26, Window()),
        ({"model_type": "gemma3_text", "sliding_window": 512, "layer_types": MIXED}, 4, Window(512, 1)),
        ({"model_type": "llama", "sliding_window": 512, "layer_types": MIXED}, 4, Window(512, 1)),
        ({"model_type": "llama", "layer_types": ["full_attention"] * 4}, 4, Window()),
        ({"model_type": "qwen2", "sliding_window": 131072, "max_window_layers": 28}, 28, Window()),
        ({"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 4096}, 28, Window()),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 21},
            28,
            Window(4096, 21),
        ),
        ({"model_type": "qwen3", "use_sliding_window": True}, 36, Window(4096, 28)),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 80}, 28, Window()),
    ],
)
def test_the_window_of_a_config(config: dict[str, Any], layers: int, expected: Window) -> None:
    """What is left out is what Transformers takes then; Qwen's window is off unless it is switched on."""
    assert window_of_config(config, layers, "config.json") == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "llama", "sliding_window": 4096}, "which layers of model_type 'llama' have it is not known"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window is 0; it must be a whole number from 1 on"),
        ({"model_type": "mistral", "sliding_window": "4k"}, "sliding_window is '4k'"),
        ({"model_type": "gemma3_text", "sliding_window_pattern": "LLG"}, "sliding_window_pattern is 'LLG'"),
        ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": -1}, "max_window_layers is -1"),
        ({"model_type": "gemma2", "layer_types": MIXED[:3]}, "layer_types has 3 layers, num_hidden_layers is 4"),
        ({"model_type": "gemma2", "layer_types": "full"}, "layer_types has 'full', num_hidden_layers is 4"),
        ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["linear_attention"] * 4}, "known: full_"),
        ({"model_type": "llama", "layer_types": MIXED}, "sliding_window is None"),
    ],
)
def test_a_window_that_is_not_understood_is_one_line(config: dict[str, Any], message: str) -> None:
    """With the file, the key and its value, and no layer counted in silence."""
    with pytest.raises(SettingsError, match=message) as caught:
        window_of_config(config, 4, "config.json")
    assert str(caught.value).startswith("config.json: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("architecture", "tokens", "pattern", "expected"),
    [
        ("llama", None, None, Window()),
        ("gemma2", 4096, None, Window(4096, 6)),
        ("gemma3", 1024, None, Window(1024, 2)),
        ("gpt-oss", 128, None, Window(128, 6)),
        ("new", 512, 4, Window(512, 3)),
        ("new", 512, 0, Window(512, 0)),
        ("new", 512, 1, Window()),
        ("new", 512, [True] * 11 + [False], Window(512, 1)),
        ("new", 512, [True, True, False], Window(512, 4)),
        ("new", 512, [], Window()),
        ("phi3", 2047, None, Window()),
    ],
)
def test_the_window_of_a_gguf_file(
    architecture: str, tokens: int | None, pattern: int | list[bool] | None, expected: Window
) -> None:
    """A word for each of 12 layers, repeated where too few, or a period; llama.cpp leaves Phi-3's window off."""
    assert window_of_gguf(architecture, 12, tokens, pattern, "model.gguf") == expected


def test_a_gguf_window_of_unknown_layers_is_one_line() -> None:
    """Rather than none at all."""
    with pytest.raises(SettingsError, match=r"model\.gguf: has a sliding window of 512 tokens, but which layers of 'n"):
        window_of_gguf("new", 12, 512, None, "model.gguf")


@pytest.mark.parametrize("pattern", [3, [True, True, False, True, True, False]])
def test_the_keys_are_read_from_a_file(tmp_path: Path, pattern: Any) -> None:
    """Both forms of the pattern's key, written by the package that converters use."""
    gguf: Any = pytest.importorskip("gguf")
    np: Any = pytest.importorskip("numpy")
    path = tmp_path / "small.gguf"
    writer = gguf.GGUFWriter(str(path), "gemma3")
    writer.add_block_count(6)
    writer.add_head_count(2)
    writer.add_embedding_length(64)
    writer.add_sliding_window(1024)
    writer.add_sliding_window_pattern(pattern)
    writer.add_tensor("output.weight", np.zeros((64, 64), dtype=np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((64, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    facts = read_model(path)
    assert (facts.window, facts.full_layers, facts.windowed) == (1024, 2, 4)


def test_a_gguf_file_without_weights_is_one_line(tmp_path: Path) -> None:
    """Nothing is divided by the number of its weights."""
    gguf: Any = pytest.importorskip("gguf")
    path = tmp_path / "empty.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(6)
    writer.add_head_count(2)
    writer.add_embedding_length(64)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(SettingsError, match=r"empty\.gguf: not a GGUF file of a model that is understood"):
        read_model(path)
