"""A model's facts from a GGUF file, from ``config.json`` and from YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.engines.generated.gguf_file import write_gguf
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.model_facts import read_model

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
        ({"hidden_size": "wide"}, "hidden_size is 'wide'; it must be a whole number from 1 on"),
        ({"hidden_size": -4096}, "hidden_size is -4096; it must be a whole number from 1 on"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": 10**400}, "too large to reckon with"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0; it must be a whole number from 1 on"),
        ({"num_attention_heads": 33}, "hidden_size is 4096, which num_attention_heads = 33 does not divide"),
        ({"num_key_value_heads": 7}, "num_attention_heads is 32, which num_key_value_heads = 7 does not divide"),
        ({"num_key_value_heads": 0}, "num_key_value_heads is 0; it must be a whole number from 1 on"),
        ({"text_config": [1]}, r"text_config is \[1\]; it must be an object"),
        ({"quantization_config": {"quant_method": "exl2"}}, "quant_method 'exl2' is not known here"),
        ({"quantization_config": {}}, "quant_method None is not known here"),
        ({"quantization_config": "fp8"}, "quantization_config is 'fp8'; it must be an object with quant_method"),
        ({"compression_config": {"quant_method": "compressed-tensors"}}, "quant_method 'compressed-tensors'"),
        ({"quantization_config": {"quant_method": "awq"}}, "bits of quantization_config is None; awq needs 4 or 8"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "is 3; gptq needs 4 or 8"),
        ({"model_type": "mixtral"}, "num_local_experts is missing"),
        ({"model_type": "mixtral", "num_local_experts": 8}, "num_experts_per_tok is missing"),
        (
            {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 20},
            "num_experts_per_tok is 20; there are only 8 experts",
        ),
        ({"model_type": "qwen3_moe"}, "num_experts is missing"),
        (
            {"model_type": "qwen2_moe", "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 2},
            "experts in some of the layers only",
        ),
        ({"num_local_experts": 8, "num_experts_per_tok": 2}, "model_type 'llama' with experts is not known here"),
    ],
)
def test_what_is_not_understood_is_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """With the file's name, and no guess."""
    with pytest.raises(SettingsError, match=message) as caught:
        read_model(config(tmp_path, **changes))
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds a list; a config.json is an object"),
        ("null", "holds null; a config.json is an object"),
        ('"llama"', "holds 'llama'; a config.json is an object"),
        ("[" * 100_000, "too deep to be read"),
    ],
)
def test_a_config_that_is_no_object_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    """A list, nothing, a text, and lists without end."""
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(SettingsError, match=message):
        read_model(tmp_path, dtype="float32")


def test_an_empty_part_for_text_leaves_the_shape_where_it_is(tmp_path: Path) -> None:
    """Then the file's own keys count."""
    assert read_model(config(tmp_path, text_config={})).layers == 32
    assert read_model(config(tmp_path, text_config={}), dtype="float32").weight_bytes == 4.0


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


GIVEN = "weights: 1000\nlayers: 12\nheads: 4\nhead_size: 8\nweight_bytes: 2\n"


def test_windows_and_experts_can_be_given(tmp_path: Path) -> None:
    """A window for every layer, or for all but some."""
    path = tmp_path / "model.yaml"
    path.write_text(f"{GIVEN}window: 4096\n")
    assert (read_model(path).window, read_model(path).windowed) == (4096, 12)
    path.write_text(f"{GIVEN}expert: 100\nexperts: 8\nexperts_used: 2\n")
    assert read_model(path).active == 1200
    path.write_text(f"{GIVEN}window: 4096\nfull_layers: 2\n")
    assert read_model(path).windowed == 10


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("head: 1000\n", r":6: head is 1000, a part of weights, which is 1000: too few"),
        ("full_layers: 2\n", r":6: full_layers needs window"),
        ("window: 8\nfull_layers: 13\n", r":7: full_layers is 13; it must be a whole number up to the 12 layers"),
        ("window: 0\n", r":6: window is 0; it must be tokens, a whole number from 1 on"),
        ("experts: 8\nexperts_used: 2\n", r":6: expert, experts and experts_used belong together, all above 0"),
        ("expert: 100\n", r":6: expert, experts and experts_used belong together, all above 0"),
        ("format: fp1\n", r":6: format is 'fp1'; it must be a number format: f32, "),
    ],
)
def test_a_fact_that_cannot_be_is_named_as_the_file_names_it(tmp_path: Path, more: str, message: str) -> None:
    """With its line."""
    path = tmp_path / "model.yaml"
    path.write_text(GIVEN + more)
    with pytest.raises(SettingsError, match=message):
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
