"""Commands print what came from elsewhere through one function, and rich is used through one class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SAFE = {"shown", "dumps"}
"""Functions whose result may be printed: one makes a text harmless, the other escapes it."""


def bare_prints(source: str) -> Iterator[int]:
    """Lines of prints that show anything but a constant without one of `SAFE`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield from (node.lineno for one in node.args if not _is_safe(one))


def _is_safe(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    names |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return bool(names & SAFE)


def test_every_print_of_a_command_is_of_shown_text() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: print(shown(...)), from phasegate.core.showing"
        for path in sorted([*(ROOT / "phasegate" / "cli").rglob("*.py"), ROOT / "phasegate" / "plugin.py"])
        for line in bare_prints(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_bare_print_is_found() -> None:
    assert list(bare_prints("print('a')\nprint(f'{error}')\nprint(shown(x))\nprint(json.dumps(x))\nprint(line)")) == [
        2,
        5,
    ]


def test_only_the_screen_makes_a_console() -> None:
    """Its markup is off and its texts are shown; another console would obey them."""
    used = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "phasegate").rglob("*.py"))
        if "rich.console" in path.read_text(encoding="utf-8") or "rich.markup" in path.read_text(encoding="utf-8")
    ]
    assert used == ["phasegate/report/screen.py"]
