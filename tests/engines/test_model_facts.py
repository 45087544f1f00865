"""A model's facts from a GGUF file, from ``config.json`` and from YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasegate.engines.generated.gguf_file import write_gguf
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.model_facts import read_model
from phasegate.strict_yaml import SettingsError

LLAMA_3_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def config(tmp_path: Path, **changes: Any) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({**LLAMA_3_8B, **changes}))
    return tmp_path / "config.json"


def test_llama_3_8b_has_the_weights_that_its_shape_says(tmp_path: Path) -> None:
    """7.50 billion are multiplied with; the 0.53 billion of the embedding are only looked up."""
    facts = read_model(config(tmp_path))
    assert (facts.body, facts.head) == (6_979_321_856, 525_336_576)
    assert facts.active == 7_504_658_432
    assert facts.weight_bytes == 2.0
    assert facts.kv_token_bytes == 131_072
    assert facts.format == "bf16"


def test_a_folder_stands_for_its_config_and_the_cache_may_have_a_format_of_its_own(tmp_path: Path) -> None:
    """An fp8 cache halves the bytes of a token."""
    config(tmp_path)
    assert read_model(tmp_path, "fp8").kv_token_bytes == 65_536
    with pytest.raises(SettingsError, match="KV cache format 'int3' is unknown"):
        read_model(tmp_path, "int3")


def test_mixtral_has_eight_experts_of_which_a_token_takes_two(tmp_path: Path) -> None:
    """46.7 billion weights without the embedding's 0.13, 12.7 billion of them active."""
    facts = read_model(
        config(tmp_path, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2, vocab_size=32000)
    )
    assert facts.body + 8 * facts.expert + facts.head == pytest.approx(46.57e9, rel=1e-3)
    assert facts.active == pytest.approx(12.75e9, rel=1e-3)


@pytest.mark.parametrize(
    ("quantization", "size", "number_format"),
    [
        ({"quant_method": "fp8"}, 1.0, "fp8"),
        ({"quant_method": "awq", "bits": 4}, 0.5 + 2.5 / 128, "bf16"),
        ({"quant_method": "gptq", "bits": 8}, 1 + 2.5 / 128, "bf16"),
    ],
)
def test_quantized_weights_are_smaller_and_the_head_is_not(
    tmp_path: Path, quantization: dict[str, Any], size: float, number_format: str
) -> None:
    """Weight-only formats compute in 16 bits."""
    facts = read_model(config(tmp_path, quantization_config=quantization))
    expected = (facts.body * size + facts.head * 2.0) / facts.active
    assert facts.weight_bytes == pytest.approx(expected)
    assert facts.format == number_format


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "deepseek_v3"}, "the layers of model_type 'deepseek_v3' are not known here"),
        ({"torch_dtype": "int3"}, "torch_dtype is 'int3'"),
        ({"hidden_size": "wide"}, "hidden_size is 'wide'; it must be a whole number"),
        ({"quantization_config": {"quant_method": "exl2"}}, "quant_method 'exl2' is not known here"),
        ({"num_hidden_layers": 0}, "body is 0; it must be a positive number"),
    ],
)
def test_what_is_not_understood_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """With the file's name, and no guess."""
    with pytest.raises(SettingsError, match=message) as caught:
        read_model(config(tmp_path, **changes))
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("weights", ["q8_0", "f32"])
def test_a_gguf_files_tensors_are_counted(tmp_path: Path, weights: str) -> None:
    """The generated model, small: its weights without the embedding, in the file's own bytes."""
    pytest.importorskip("gguf")
    spec = ModelSpec(vocabulary=8192, hidden=64, feed_forward=128, layers=2, weights=weights)
    path = tmp_path / "small.gguf"
    write_gguf(spec, path)
    facts = read_model(path)
    assert facts.active == spec.parameters - spec.vocabulary * spec.hidden
    assert facts.head == spec.vocabulary * spec.hidden
    assert (facts.layers, facts.heads, facts.kv_heads, facts.head_size) == (2, 2, 1, 64)
    assert facts.weight_bytes == pytest.approx({"q8_0": 34 / 32, "f32": 4.0}[weights])
    assert facts.kv_token_bytes == 2 * 2 * 64 * 2
    assert facts.format == weights


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all" * 10])
def test_a_file_that_is_no_gguf_is_one_line(tmp_path: Path, content: bytes) -> None:
    """Empty, cut off, and something else."""
    pytest.importorskip("gguf")
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"broken\.gguf: not a GGUF file"):
        read_model(path)


def test_facts_can_be_given(tmp_path: Path) -> None:
    """With the output head among the weights, and a key/value head for every head unless told otherwise."""
    path = tmp_path / "model.yaml"
    path.write_text("name: mine\nweights: 1000\nhead: 100\nlayers: 2\nheads: 4\nhead_size: 8\nweight_bytes: 0.5\n")
    facts = read_model(path)
    assert (facts.body, facts.active, facts.kv_heads) == (900, 1000, 4)
    path.write_text("weights: 1000\nlayer: 2\n")
    with pytest.raises(SettingsError, match=r"model\.yaml:2: unknown key 'layer'; did you mean 'layers'"):
        read_model(path)
    path.write_text("weights: 1000\nlayers: 2\nheads: 4\nhead_size: 8\n")
    with pytest.raises(SettingsError, match="the key 'weight_bytes' is missing"):
        read_model(path)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """With what could be given."""
    with pytest.raises(SettingsError, match="no model file"):
        read_model(tmp_path / "none.gguf")


def test_an_engine_may_hold_weights_in_another_format_than_the_file(tmp_path: Path) -> None:
    """Turned into 32 bits they are twice as large, also where the text's part of a description says otherwise."""
    path = config(tmp_path)
    held = read_model(path, dtype="float32")
    assert (held.weight_bytes, held.format, held.active) == (4.0, "f32", read_model(path).active)
    inner = {**LLAMA_3_8B, "torch_dtype": "bfloat16"}
    path.write_text(json.dumps({"model_type": "seeing", "text_config": inner}))
    assert (read_model(path).weight_bytes, read_model(path, dtype="float32").weight_bytes) == (2.0, 4.0)


def test_a_part_of_a_model_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    """Its other tensors lie in other files."""
    gguf: Any = pytest.importorskip("gguf")
    path = tmp_path / "big-00001-of-00003.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(SettingsError, match="one of 3 parts of a model; put them together"):
        read_model(path)
