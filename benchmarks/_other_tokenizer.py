"""A tokenizer as small as can be, in the format of Hugging Face: tools that insist on one need no hub for it."""

from __future__ import annotations

import json
from pathlib import Path


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer that knows one word, between white space; returns its folder."""
    folder.mkdir()
    unknown = {"id": 0, "content": "[UNK]", "single_word": False, "lstrip": False, "rstrip": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{**unknown, "normalized": False, "special": True}],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "word": 1}, "unk_token": "[UNK]"},
    }
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "model_max_length": 8192}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
