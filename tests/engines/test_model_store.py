"""Generated model files: the same bytes every time, whole or made again, one writer at a time."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from pathlib import Path

import pytest

from phasegate.engines.base import EngineError
from phasegate.engines.generated.gguf_file import write_gguf
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.store import cache_folder, ensure_model

SMALL = ModelSpec(vocabulary=8192, hidden=64, feed_forward=128, layers=1, heads=1)


class CountingWriter:
    """Writes a few bytes that depend on the spec, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, spec: ModelSpec, path: Path) -> None:
        """Write a file."""
        self.calls += 1
        path.write_bytes(f"weights of {spec}".encode() * 100)


def test_equal_specs_give_equal_files_and_other_seeds_give_others(tmp_path: Path) -> None:
    """Everybody measures the same model."""
    other = ModelSpec(seed=1, vocabulary=8192, hidden=64, feed_forward=128, layers=1, heads=1)
    for name, spec in (("a", SMALL), ("b", SMALL), ("c", other)):
        write_gguf(spec, tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize("weights", ["q8_0", "f16", "bf16", "f32", "q4_0"])
def test_every_number_format_is_written(tmp_path: Path, weights: str) -> None:
    """The planted slowdowns need them all."""
    spec = ModelSpec(vocabulary=8192, hidden=64, feed_forward=128, layers=1, heads=1, weights=weights)
    path = ensure_model(spec, tmp_path)
    assert path.read_bytes()[:4] == b"GGUF"
    assert weights in path.name


def test_a_model_is_made_once_and_its_digest_noted(tmp_path: Path) -> None:
    """The second use finds the first one's file."""
    write = CountingWriter()
    path = ensure_model(SMALL, tmp_path, write)
    assert ensure_model(SMALL, tmp_path, write) == path
    assert write.calls == 1
    note = json.loads(path.with_suffix(".json").read_text())
    assert note == {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        _flip_a_byte,
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.unlink(),
        lambda path: path.with_suffix(".json").unlink(),
        lambda path: path.with_suffix(".json").write_text("{"),
        lambda path: path.with_suffix(".json").write_text("[]"),
    ],
    ids=["a byte flipped", "cut short", "gone", "note gone", "note cut short", "note of another kind"],
)
def test_a_damaged_model_is_made_again(tmp_path: Path, damage: object) -> None:
    """Whatever happened to the file or its note, the next use has a whole one."""
    write = CountingWriter()
    path = ensure_model(SMALL, tmp_path, write)
    whole = path.read_bytes()
    assert callable(damage)
    damage(path)
    assert ensure_model(SMALL, tmp_path, write).read_bytes() == whole
    assert write.calls == 2


def test_a_writer_that_fails_leaves_no_model_behind(tmp_path: Path) -> None:
    """Half a file never appears under the model's name."""

    def fail(_: ModelSpec, path: Path) -> None:
        path.write_bytes(b"half")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        ensure_model(SMALL, tmp_path, fail)
    assert not list(tmp_path.glob("*.gguf"))
    assert not list(tmp_path.glob(".*.part"))


def test_what_a_killed_writer_left_is_cleared_away(tmp_path: Path) -> None:
    """Or the folder would grow by 200 MB with every kill."""
    left = tmp_path / f".{Path(SMALL.file_name).stem}-abcd.part"
    left.write_bytes(b"half")
    ensure_model(SMALL, tmp_path, CountingWriter())
    assert not left.exists()


def test_two_at_once_make_one_file(tmp_path: Path) -> None:
    """The second waits for the first and then finds its file."""
    write, both = CountingWriter(), threading.Barrier(2)

    def use() -> None:
        both.wait()
        ensure_model(SMALL, tmp_path, write)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert write.calls == 1


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    """It names the folder and the way out."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(EngineError, match=r"cannot keep the generated model in .*/file.*set PHASEGATE_CACHE_DIR"):
        ensure_model(SMALL, blocked / "below", CountingWriter())


def test_a_missing_writer_package_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what to install."""
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(EngineError, match=r"package gguf.*pip install 'phasegate\[local\]'"):
        ensure_model(SMALL, tmp_path)


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's own variable goes before the desktop's, and that before the home folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("PHASEGATE_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("PHASEGATE_CACHE_DIR")
    assert cache_folder() == tmp_path / "xdg" / "phasegate"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "phasegate"
