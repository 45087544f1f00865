"""One environment for each real engine: ``python -m benchmarks.engine_envs [NAME ...]``

Each engine gets a virtual environment of its own below the user's cache folder, since their needs contradict each
other. What is there already and was made by the same recipe is left as it is. Exit status: 0 when every named engine
is there, 1 when one could not be installed; that one is said, and the others are made all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks._engine_recipes import RECIPES, Recipe
from benchmarks._engine_stubs import write_stubs
from phasegate.engines.generated.store import cache_folder

NOTE = "phasegate-environment.json"


class InstallError(RuntimeError):
    """An engine could not be installed. The message is one line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An installed engine.

    Attributes:
        name: of the engine.
        python: interpreter of its environment.
        recipe: digest of the recipe that made it.
        seconds: what the installation took; packages that pip had kept make it shorter.
        size: bytes on disk.
    """

    name: str
    python: str
    recipe: str
    seconds: float
    size: int


def environments_folder() -> Path:
    """Where the environments are unless an option says otherwise."""
    return cache_folder() / "engines"


def known(name: str, folder: Path | None = None) -> Environment | None:
    """The environment of an engine, or None where it is not installed by the present recipe."""
    note = (folder or environments_folder()) / name / NOTE
    try:
        found = Environment(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.recipe == RECIPES[name].digest() and Path(found.python).exists() else None


def install(recipe: Recipe, folder: Path) -> Environment:
    """Make the environment of a recipe anew.

    Raises:
        InstallError: a step failed; the end of its output is in the message.
    """
    home = folder / recipe.name
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    _step(recipe, [sys.executable, "-m", "venv", str(home)])
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _step(recipe, [*pip, "install", "--upgrade", "pip"])
    for packages in recipe.installs:
        _step(recipe, [*pip, "install", *packages])
    if recipe.removes:
        _step(recipe, [*pip, "uninstall", "--yes", *recipe.removes])
    if recipe.stubs:
        write_stubs(Path(_packages(python)))
    made = Environment(recipe.name, python, recipe.digest(), time.monotonic() - began, _size(home))
    (home / NOTE).write_text(json.dumps(asdict(made)), encoding="utf-8")
    return made


def _step(recipe: Recipe, command: Sequence[str]) -> None:
    done = subprocess.run(command, env={**os.environ, **recipe.environment}, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise InstallError(f"{recipe.name}: {' '.join(command[1:4])} ... failed: {' / '.join(lines[-3:])[-500:]}")


def _packages(python: str) -> str:
    done = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def _size(folder: Path) -> int:
    return sum(one.stat(follow_symlinks=False).st_size for one in folder.rglob("*") if not one.is_dir())


def main(words: Sequence[str] | None = None) -> int:
    """Install what is asked for and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_envs", description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}; default: all")
    parser.add_argument("--folder", type=Path, default=environments_folder(), help="where the environments are made")
    args = parser.parse_args(words)
    unknown = sorted(set(args.engines) - set(RECIPES))
    if unknown:
        parser.error(f"unknown engine {unknown[0]!r}; known: {', '.join(RECIPES)}")
    failed = 0
    for name in args.engines or RECIPES:
        try:
            made, word = known(name, args.folder), "is there"
            if made is None:
                print(f"{name}: installing below {args.folder}", flush=True)
                made, word = install(RECIPES[name], args.folder), "installed"
        except InstallError as error:
            failed += 1
            print(f"NOT INSTALLED {error}", flush=True)
        else:
            print(f"{name}: {word}, {made.size / 1e9:.2f} GB, {made.seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
