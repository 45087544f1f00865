"""Which module may import which: the layers of the library, lowest first, and a finder of breaches."""

from __future__ import annotations

import ast
from pathlib import Path

LAYERS: tuple[tuple[str, ...], ...] = (
    ("units", "words", "strict_yaml", "timeline", "session", "hiding", "naming", "showing"),
    ("workload",),
    ("wire",),
    ("metric",),
    ("stats",),
    ("prompt", "run", "client_error", "load_run", "load_plan", "budget", "spending"),
    ("gate",),
    ("baseline", "baselines", "interop", "engines", "load", "whole_file", "outlet", "faults"),
    (
        "traffic",
        "counting",
        "server_view",
        "lab",
        "limits",
        "load_lab",
        "opening",
        "sitting",
        "gating",
        "gating_paired",
        "selftest",
        "examination",
    ),
    ("report",),
    ("starting", "pipeline"),
    (
        "judged",
        "replay",
        "pytest_options",
        "pytest_chosen",
        "pytest_command",
        "pytest_end",
        "pytest_gate",
        "pytest_load",
        "pytest_pieces",
        "pytest_shape",
        "pytest_budget",
        "pytest_plan",
        "pytest_report",
        "pytest_faults",
        "pytest_scope",
        "pytest_state",
        "pytest_tally",
        "plugin",
        "cli",
        "cli_probe",
        "cli_compare",
        "cli_baselines",
        "cli_selftest",
        "cli_roofline",
        "pytest_roofline",
        "cli_report",
        "cli_init",
        "cli_ci",
        "cli_explain",
        "cli_decide",
        "pytest_home",
        "pytest_own",
        "pytest_spending",
        "hooks",
        "pytest_diagnosis",
        "__main__",
    ),
)
"""Names of modules and packages of ``phasegate``, from the words at the bottom to the edges at the top."""

PURE_BELOW = "baseline"
"""Layers below this one get time, chance and bytes as arguments."""

IMPURE_MODULES = {"time", "socket", "random", "secrets", "asyncio", "subprocess", "threading", "datetime"}


def layer_of(module: str) -> int:
    """Layer of ``phasegate.<part>...``; raises KeyError for a part that no layer names."""
    part = module.split(".")[1]
    for number, names in enumerate(LAYERS):
        if part in names:
            return number
    raise KeyError(f"{module}: no layer names {part!r}; add it to LAYERS in tests/project/layers.py")


def imports_of(path: Path) -> set[str]:
    """Every module a file imports anywhere, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "phasegate":
                found.update(f"phasegate.{alias.name}" for alias in node.names)
            else:
                found.add(node.module)
    return found


def breaches(root: Path) -> list[str]:
    """One line for every import that goes up the street, or brings time or chance below the world."""
    lines = []
    world = layer_of(f"phasegate.{PURE_BELOW}")
    for path in sorted((root / "phasegate").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if module in ("phasegate.__init__",):
            continue
        own = layer_of(module)
        for imported in sorted(imports_of(path)):
            top = imported.split(".")[0]
            if top == "phasegate" and imported.count(".") >= 1 and imported != "phasegate.__version__":
                if layer_of(imported) > own:
                    lines.append(f"{module} imports {imported}, which stands above it")
            elif own < world and top in IMPURE_MODULES:
                lines.append(f"{module} imports {top}; time, chance and the outside are arguments below the world")
    return lines
