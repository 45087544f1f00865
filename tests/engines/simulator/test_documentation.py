"""The page about the simulator says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.engines.simulator.breakers import BREAKERS
from phasegate.engines.simulator.engine import SimulatorEngine
from phasegate.engines.simulator.faults import FAULTS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "simulator.md"


def test_every_fault_stands_on_the_page_in_the_codes_words() -> None:
    """Row by row."""
    text = PAGE.read_text(encoding="utf-8")
    for fault, sentence in FAULTS.items():
        assert f"| `{fault.value}` | {sentence} |" in text


def test_every_breaker_stands_on_the_page_in_the_codes_words() -> None:
    """Row by row."""
    text = PAGE.read_text(encoding="utf-8")
    for name, breaker in BREAKERS.items():
        assert f"| `{name}` | {breaker.what} | {breaker.breaks} |" in text


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands on the page."""
    code = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code, names)
    assert "http://127.0.0.1:" in capsys.readouterr().out
    engine = names["engine"]
    assert isinstance(engine, SimulatorEngine)
    assert (engine.config.session, engine.config.cache.value, names["truths"]) == (1, "off", [])
