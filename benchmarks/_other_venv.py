"""Virtual environments for the load tools that our client is compared with: made once on request, kept in a cache.

Each tool has its own, so that their dependencies meet neither each other's nor the project's. They come from the
package index that pip is set up for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

INSTALL_SECONDS = 900.0
LINES_OF_TROUBLE = 300
"""Characters of pip's last words that a message quotes."""


class NotInstalledError(RuntimeError):
    """A tool cannot be had. The message is one line."""


def cache_folder() -> Path:
    """Where the environments are: ``$XDG_CACHE_HOME/phasegate/benchmarks``, by default below ``~/.cache``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "phasegate" / "benchmarks"


def python_with(name: str, packages: Sequence[str]) -> Path:
    """The interpreter of the environment with that name, made now if it is not there.

    Raises:
        NotInstalledError: pip cannot install the packages.
    """
    folder = cache_folder() / name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)], name)
        _run([str(python), "-m", "pip", "install", "--quiet", *packages], name)
        (folder / "complete").touch()
    return python


def wheel_folder(name: str, packages: Sequence[str]) -> Path:
    """A folder with packages unpacked without anything that they depend on.

    Raises:
        NotInstalledError: pip cannot get the packages.
    """
    folder = cache_folder() / name
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        words = ["install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder), *packages]
        _run([sys.executable, "-m", "pip", *words], name)
        (folder / "complete").touch()
    return folder


def version_in(python: Path, package: str) -> str:
    """The installed version of a package."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _run(words: Sequence[str], name: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"{name}: not installed after {INSTALL_SECONDS:.0f} s") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-LINES_OF_TROUBLE:]
        raise NotInstalledError(f"{name}: cannot be installed: {said}")
