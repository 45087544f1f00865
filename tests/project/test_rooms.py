"""The library is a one-way street of twelve rooms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project.rooms import ROOT, breaches, circles, flat_modules, imports_of

STILL: frozenset[str] = frozenset(
    {
        "phasegate.core.faults imports phasegate.engines.base",
        "phasegate.core.faults imports phasegate.gate.exit_status",
        "phasegate.core.faults imports phasegate.wire.messages",
        "phasegate.load.files imports phasegate.engines.base",
        "phasegate.load.route imports phasegate.engines.base",
        "phasegate.load.tls imports phasegate.engines.base",
        "phasegate.load.workers.driver imports phasegate.measure.own_error",
        "phasegate.report.decision_record imports phasegate.measure.measure_for_diagnosis",
        "phasegate.report.document.build imports phasegate.measure.load_runner",
        "phasegate.report.document.build imports phasegate.measure.session_runner",
        "phasegate.report.document.from_load imports phasegate.measure.load_runner",
        "phasegate.report.document.from_server imports phasegate.measure.server_metrics",
        "phasegate.report.document.surroundings imports phasegate.cli.profile_lines",
        "phasegate.report.document.surroundings imports phasegate.measure.session_runner",
        "phasegate.report.load_tables imports phasegate.measure.load_runner",
        "phasegate.report.progress imports phasegate.load.traffic",
        "phasegate.report.progress imports threading: time, chance and the outside are arguments here",
        "phasegate.report.progress imports time: time, chance and the outside are arguments here",
        "phasegate.report.server_lines imports phasegate.measure.load_runner",
        "phasegate.report.server_lines imports phasegate.measure.server_metrics",
        "phasegate.report.summary imports phasegate.cli.profile_lines",
        "phasegate.report.summary imports phasegate.measure.session_runner",
    }
)
"""Imports against the order that are still there; only ever shorter."""

STILL_ROUND: frozenset[tuple[str, ...]] = frozenset(
    {
        ("phasegate.engines.cache_mark", "phasegate.engines.profile"),
        ("phasegate.measure.prompt_counting", "phasegate.measure.server_metrics", "phasegate.measure.session_runner"),
        ("phasegate.plugin", "phasegate.pytest_plugin.report"),
        (
            "phasegate.pytest_plugin.budget",
            "phasegate.pytest_plugin.gate",
            "phasegate.pytest_plugin.load",
            "phasegate.pytest_plugin.load_shape",
            "phasegate.pytest_plugin.plan",
            "phasegate.pytest_plugin.state",
            "phasegate.pytest_plugin.token_cap",
        ),
    }
)
"""Circles that are still there; only ever fewer."""


def test_no_module_lies_flat() -> None:
    assert flat_modules(imports_of(ROOT)) == []


def test_no_room_imports_from_a_later_one_or_brings_time_or_chance_where_none_may_be() -> None:
    assert set(breaches(imports_of(ROOT))) == STILL


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert set(circles(imports_of(ROOT))) == STILL_ROUND


def planted(folder: Path, files: dict[str, str]) -> Path:
    for name, code in files.items():
        path = folder / "phasegate" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("core/units.py", "from phasegate.gate.policy import Policy\n", "phasegate.gate.policy"),
        ("wire/sse.py", "def f():\n    import phasegate.report.progress\n", "phasegate.report.progress"),
        ("stats/laws.py", "import random\n", "random"),
        ("cli/probe.py", "from phasegate.pytest_plugin import state\n", "phasegate.pytest_plugin"),
        ("gate/a.py", "if TYPE_CHECKING:\n    from phasegate.measure.session_runner import X\n", "session_runner"),
    ],
)
def test_a_planted_breach_is_found(tmp_path: Path, module: str, code: str, said: str) -> None:
    (found,) = breaches(imports_of(planted(tmp_path, {module: code})))
    assert said in found


def test_a_planted_circle_and_a_flat_module_are_found(tmp_path: Path) -> None:
    files = {
        "core/a.py": "import phasegate.core.b\n",
        "core/b.py": "def f():\n    from phasegate.core.c import x\n",
        "core/c.py": "from phasegate.core import a\n",
        "lonely.py": "",
    }
    imports = imports_of(planted(tmp_path, files))
    assert circles(imports) == [("phasegate.core.a", "phasegate.core.b", "phasegate.core.c")]
    assert flat_modules(imports) == ["lonely"]
