"""Settings of the embedded engine: text in, one clear line for what is wrong."""

from __future__ import annotations

import pytest

from phasegate.engines.base import EngineError
from phasegate.engines.embedded_config import EmbeddedConfig, parse_config


def test_no_words_mean_the_defaults() -> None:
    """One thread, four slots, a pinned engine on the generated model."""
    config = parse_config("", source="here")
    assert config == EmbeddedConfig()
    assert (config.threads, config.n_parallel, config.pinned, config.model) == (1, 4, True, "generated")


def test_words_change_what_they_name_and_nothing_else() -> None:
    """What is not named keeps its value in the base."""
    base = EmbeddedConfig(layers=3)
    config = parse_config("n_ubatch=32 flash_attn=off cache_prompt=false cache_type_k=f32", source="here", base=base)
    assert config == EmbeddedConfig(layers=3, n_ubatch=32, flash_attn="off", cache_prompt=False, cache_type_k="f32")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_ubatsh=32", "--x: 'n_ubatsh=32' is not a setting of the embedded engine; did you mean n_ubatch?"),
        ("zzzzzz=1", "known: model, layers, "),
        ("n_ubatch", "--x: 'n_ubatch' is not a setting"),
        ("n_ubatch=few", "--x: 'n_ubatch=few': it must be a whole number"),
        ("n_parallel=0", "n_parallel=0: it must be at least 1"),
        ("threads=-1", "threads=-1: it must be at least 1"),
        ("cache_prompt=maybe", "--x: 'cache_prompt=maybe': it must be true or false"),
        ("flash_attn=yes", "flash_attn=yes: it must be one of auto, on, off"),
        ("cache_type_v=int4", "cache_type_v=int4: it must be one of f16, f32, bf16, q8_0, q4_0"),
        ("weights=fp8", "weights 'fp8' are unknown; known: q8_0, f16, bf16, f32, q4_0"),
        ("feed_forward=100", "feed_forward is 100; it must be a multiple of 32"),
        ("draft_yield=1", "draft_yield=1: it needs draft_tokens as well"),
        ("draft_tokens=0", "draft_tokens=0: it must be at least 1"),
        ("draft_tokens=3 model=smollm2", "draft_tokens=3: it shapes the generated model"),
        ("model=smollm2 layers=3", "layers=3: it shapes the generated model, and the model is smollm2"),
    ],
)
def test_a_wrong_word_is_one_line_that_names_it(text: str, message: str) -> None:
    """The word, where it came from, and what is allowed."""
    with pytest.raises(EngineError) as caught:
        parse_config(text, source="--x")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("slots", "context"), [(1, 8192), (4, 32_768), (16, 131_072)])
def test_every_slot_has_room_for_a_prompt_of_4096_tokens(slots: int, context: int) -> None:
    """llama.cpp divides the context among the slots, so it grows with them."""
    config = EmbeddedConfig(n_parallel=slots)
    assert config.params()["n_ctx"] == config.settings()["n_ctx"] == context
    assert context // slots >= 2 * 4096


def test_a_named_context_is_taken_as_it_is() -> None:
    """For those who want to see it run out."""
    assert EmbeddedConfig(n_ctx=4096).params()["n_ctx"] == 4096


def test_prefill_uses_the_decode_threads_unless_told_otherwise() -> None:
    """The two are separate levers of the two phases."""
    assert EmbeddedConfig(threads=2).params()["cpuparams_batch.n_threads"] == 2
    assert EmbeddedConfig(threads=1, threads_batch=2).params()["cpuparams_batch.n_threads"] == 2


def test_a_draft_changes_the_identity_only_where_there_is_one() -> None:
    """Stored sessions of an engine without a draft stay comparable."""
    assert not any(name.startswith("draft_") for name in EmbeddedConfig().settings())
    told = EmbeddedConfig(draft_tokens=3)
    assert told.settings()["draft_tokens"] == 3
    assert told.params()["speculative.draft.n_max"] == 3
    spec = told.draft_spec()
    assert spec is not None
    assert (spec.vocabulary, spec.layers) == (told.spec().vocabulary, 1)
    assert EmbeddedConfig().draft_spec() is None
