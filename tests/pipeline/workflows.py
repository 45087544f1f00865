"""Reads workflows and actions as GitHub would, far enough to run their shell steps here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
GATE = ROOT / ".github" / "workflows" / "perf-gate.yml"
UPDATE = ROOT / ".github" / "workflows" / "update-baselines.yml"
ACTION = ROOT / ".github" / "actions" / "perf-gate" / "action.yml"
STARTER = ROOT / "phasegate" / "cli" / "init" / "own" / "perf-gate.yml"
ALL = (GATE, UPDATE, STARTER, ROOT / ".github" / "workflows" / "ci.yml")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a job or action: its name, script and environment as written."""

    name: str
    script: str
    env: Mapping[str, str]
    uses: str


def steps_of(path: Path) -> list[Step]:
    """Every step of the only job of a workflow, or of a composite action."""
    document = load(path)
    if "runs" in document:
        found = document["runs"]["steps"]
    else:
        ((_, job),) = document["jobs"].items()
        found = job["steps"]
    return [Step(one.get("name", ""), one.get("run", ""), one.get("env", {}), one.get("uses", "")) for one in found]


def step(path: Path, name: str) -> Step:
    """The step of that name."""
    (found,) = [one for one in steps_of(path) if one.name == name]
    return found


def load(path: Path) -> dict[Any, Any]:
    """The document; ``on`` is a truth value to YAML 1.1 and stands under True."""
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def filled(env: Mapping[str, str], values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """An environment with its ``${{ expressions }}`` replaced by values; unknown ones become empty, as on GitHub."""
    for name, text in env.items():
        yield name, re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda match: _first(match[1], values), str(text))


def _first(expression: str, values: Mapping[str, str]) -> str:
    """The first of the alternatives (``a || b``) that is not empty."""
    found = (values.get(name.strip(), "") for name in expression.split("||"))
    return next((value for value in found if value), "")


def run_step(
    one: Step, values: Mapping[str, str], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a step's script as a runner does: ``bash -e`` on a file, in the checkout."""
    script = folder / ".step.sh"
    script.write_text(one.script, encoding="utf-8")
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=folder,
        env={**environment, **dict(filled(one.env, values))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
