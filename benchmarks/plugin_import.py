"""What does the plugin cost a repository that does not use it? ``python -m benchmarks.plugin_import``

Two figures. *Import*: the time ``import phasegate.plugin`` takes in a process that has pytest already. *Run*: a whole
pytest run of one trivial test with the plugin and with it switched off, taking turns, and the difference of medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

IMPORT = (
    "import time, pytest, argparse; began = time.perf_counter(); import phasegate.plugin; "
    "print(time.perf_counter() - began)"
)


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args(words).runs
    imports = [float(_output("-c", IMPORT)) for _ in range(runs)]
    print(f"import: median {_ms(imports)}, fastest {min(imports) * 1e3:.1f} ms, of {runs}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_trivial.py").write_text("def test_trivial(): pass\n", encoding="utf-8")
        sides: dict[str, list[float]] = {"with": [], "without": []}
        for _ in range(runs):
            sides["with"].append(_run(folder))
            sides["without"].append(_run(folder, "-p", "no:phasegate.plugin"))
    more = statistics.median(sides["with"]) - statistics.median(sides["without"])
    ratio = statistics.median(sides["with"]) / statistics.median(sides["without"])
    print(f"run of one trivial test: with {_ms(sides['with'])}, without {_ms(sides['without'])}, medians of {runs}")
    print(f"difference {more * 1e3:.1f} ms, {ratio:.3f}x")


def _ms(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds) * 1e3:.1f} ms"


def _output(*words: str) -> str:
    return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout


def _run(folder: Path, *words: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, "PYTEST_ADDOPTS": ""})
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
