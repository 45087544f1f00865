"""Where nobody measures, the plugin is light and changes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from phasegate.pytest_plugin.options import OPTIONS
from tests.edges.quick_pytest import QuickPytest

HEAVY = ("numpy", "scipy", "openai", "rich")


def test_in_a_foreign_repository_nothing_heavy_is_imported(tmp_path: Path) -> None:
    """A whole run of a trivial test, with the plugin found as an installed one is."""
    (tmp_path / "test_trivial.py").write_text(
        "import sys\n\n"
        "def test_trivial():\n"
        "    assert 'phasegate.plugin' in sys.modules\n"
        f"    assert [name for name in {HEAVY!r} if name in sys.modules] == []\n"
    )
    done = subprocess.run(
        # pytest-randomly would import numpy.
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # .benchmarks is pytest-benchmark's own.
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__", ".benchmarks"}
    assert left == {"test_trivial.py"}


def test_importing_the_plugin_loads_no_library_but_pytest() -> None:
    """Nor any module of the project that needs one."""
    program = (
        "import sys, pytest; before = set(sys.modules); import phasegate.plugin; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["phasegate"]


def test_the_help_names_every_option(quick: QuickPytest, tmp_path: Path) -> None:
    """In a group of their own."""
    done = quick.run("--help", cwd=tmp_path)
    assert done.status == 0
    assert "measure an LLM server phase by phase (phasegate)" in done.output
    missing = [name for names, _, _ in OPTIONS for name in names if name not in done.output]
    assert missing == []


def test_tests_run_in_parallel_and_measuring_refuses_to(quick: QuickPytest, small: Path, tmp_path: Path) -> None:
    """Under ``-n`` an ordinary test is none of our business; one that would measure says why it does not."""
    pytest.importorskip("xdist")
    (tmp_path / "test_both.py").write_text("def test_ordinary(): pass\n\ndef test_measuring(perf_lab): pass\n")
    done = quick.run("-n", "1", "--perf-workloads", small, "--perf-engine", "simulator", tmp_path, cwd=tmp_path)
    assert done.status == 15, done.output
    assert "measuring in parallel would measure the neighbours: run perf tests without -n" in " ".join(
        done.output.split()
    )
    assert "1 passed, 1 not_measured" in done.output
