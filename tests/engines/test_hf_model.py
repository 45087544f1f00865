"""The Hugging Face form of the generated model: the same weights as the GGUF file, in formats that others read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phasegate.engines.base import EngineError
from phasegate.engines.generated.hf_folder import as_bfloat16, hf_name, rotated_halves, write_hf
from phasegate.engines.generated.hf_store import NOTE, ensure_hf_model
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.vocabulary import vocabulary
from phasegate.engines.generated.weights import tensors

SMALL = ModelSpec(vocabulary=8192, hidden=64, feed_forward=128, layers=1, heads=2, head_size=32, weights="bf16")


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file in bfloat16, as single precision."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    header.pop("__metadata__")
    found = {}
    for name, told in header.items():
        start, end = (8 + length + offset for offset in told["data_offsets"])
        halves = np.frombuffer(content[start:end], "<u2").astype(np.uint32) << 16
        found[name] = halves.view(np.float32).reshape(told["shape"])
    assert end == len(content)
    return found


def test_the_weights_are_those_of_the_gguf_file(tmp_path: Path) -> None:
    """Every tensor under its other name, rounded to bfloat16; query and key rows in the other order."""
    write_hf(SMALL, tmp_path)
    found = read_weights(tmp_path / "model.safetensors")
    assert len(found) == 3 + 9 * SMALL.layers
    for name, matrix in tensors(SMALL):
        part = name.split(".")[-2]
        heads = {"attn_q": SMALL.heads, "attn_k": SMALL.kv_heads}.get(part)
        expected = matrix if heads is None else rotated_halves(matrix, heads)
        np.testing.assert_allclose(found[hf_name(name)], expected, rtol=2**-8)


def test_rotating_halves_scores_as_rotating_neighbours() -> None:
    """The scores of attention are the same for the two orders of rows, each with its own way to rotate."""
    rng = np.random.default_rng(0)
    size, angles = 8, np.arange(1, 5) * 0.3
    query, key = rng.standard_normal((2, size, 1), np.float32)

    def neighbours(rows: NDArray[np.float32], turn: float) -> NDArray[np.float64]:
        pairs = rows.ravel().reshape(-1, 2)
        c, s = np.cos(turn * angles), np.sin(turn * angles)
        return np.stack([pairs[:, 0] * c - pairs[:, 1] * s, pairs[:, 0] * s + pairs[:, 1] * c], 1).ravel()

    def halves(rows: NDArray[np.float32], turn: float) -> NDArray[np.float64]:
        first, second = np.split(rows.ravel(), 2)
        c, s = np.cos(turn * angles), np.sin(turn * angles)
        return np.concatenate([first * c - second * s, first * s + second * c])

    wanted = neighbours(query, 3) @ neighbours(key, 1)
    assert halves(rotated_halves(query, 1), 3) @ halves(rotated_halves(key, 1), 1) == pytest.approx(wanted, rel=1e-5)
    assert halves(query, 3) @ halves(key, 1) != pytest.approx(wanted, rel=1e-2)


def test_bfloat16_rounds_to_the_nearest() -> None:
    """Ties go to the even neighbour."""
    one = 0x3F80
    given = np.array([1.0, 1 + 2**-9, 1 + 2**-8, 1 + 3 * 2**-8, -1.0], np.float32)
    assert as_bfloat16(given).tolist() == [one, one, one, one + 2, one | 0x8000]


def test_the_tokenizer_is_that_of_the_gguf_file(tmp_path: Path) -> None:
    """The same numbers for all tokens that can occur, the same merges in the same order; padding is left out."""
    write_hf(SMALL, tmp_path)
    told = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    words = vocabulary(SMALL.vocabulary)
    numbers = {**told["model"]["vocab"], **{one["content"]: one["id"] for one in told["added_tokens"]}}
    assert numbers == {token: number for number, token in enumerate(words.tokens[: words.used])}
    assert [tuple(pair) for pair in told["model"]["merges"]] == list(words.merges)
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))["vocab_size"] == SMALL.vocabulary


def test_a_folder_is_made_once_and_again_when_damaged(tmp_path: Path) -> None:
    """Equal specs give equal bytes; a file that was cut or changed is noticed."""
    made = ensure_hf_model(SMALL, tmp_path)
    before = {one.name: one.read_bytes() for one in made.iterdir()}
    stamp = (made / NOTE).stat().st_mtime_ns
    assert ensure_hf_model(SMALL, tmp_path) == made
    assert (made / NOTE).stat().st_mtime_ns == stamp
    (made / "config.json").write_text("{}")
    ensure_hf_model(SMALL, tmp_path)
    assert {one.name: one.read_bytes() for one in made.iterdir()} == before
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".part")] == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """In one line with the remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=r"cannot keep the generated model in .*PHASEGATE_CACHE_DIR"):
        ensure_hf_model(SMALL, tmp_path / "file")
