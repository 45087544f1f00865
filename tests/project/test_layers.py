"""The library is a one-way street."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.layers import breaches

ROOT = Path(__file__).resolve().parents[2]


def test_no_module_imports_from_above_or_brings_chance_below_the_world() -> None:
    assert breaches(ROOT) == []


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("units.py", "from phasegate.plugin import STATE\n", "phasegate.plugin"),
        ("metric.py", "def f():\n    import phasegate.report.progress\n", "phasegate.report.progress"),
        ("stats/laws.py", "import random\n", "random"),
    ],
)
def test_a_planted_breach_is_found(tmp_path: Path, module: str, code: str, said: str) -> None:
    planted = tmp_path / "phasegate" / module
    planted.parent.mkdir(parents=True)
    planted.write_text(code, encoding="utf-8")
    found = breaches(tmp_path)
    assert len(found) == 1
    assert said in found[0]
