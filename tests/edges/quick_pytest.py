"""Real runs of pytest and of the phasegate command, one process each, without paying for imports again and again.

A driver process imports the large libraries once and forks for every run, so that a run costs a fraction of a second
instead of two. Nothing of the project and nothing of pytest's configuration is loaded before the fork: each run starts
as ``python -m pytest`` does, with its own arguments, environment and folder, and ends with its own exit status.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pytest

ROOT = Path(__file__).resolve().parents[2]

PRELOADED = ("numpy", "scipy.stats", "openai", "openai.types", "yaml", "rich.table", "rich.console", "psutil")

CLEARED = (
    "CI", "OPENAI_BASE_URL", "OPENAI_API_KEY", "PYTEST_ADDOPTS", "PHASEGATE_CACHE_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID",
)  # fmt: skip
"""Variables of the surroundings that would change a run."""


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended: its exit status and all it printed."""

    status: int
    output: str


class QuickPytest:
    """Runs pytest in forks of a driver; a context manager."""

    def __enter__(self) -> QuickPytest:
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.edges.quick_pytest"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._driver.communicate()

    def run(self, *arguments: str | Path, cwd: Path = ROOT, **environment: str) -> Done:
        """One run with these arguments."""
        ours = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        return self._ordered("pytest", [*ours, *map(str, arguments)], cwd, environment)

    def phasegate(self, *arguments: str | Path, cwd: Path = ROOT, **environment: str) -> Done:
        """One run of the command with these arguments."""
        return self._ordered("phasegate", [*map(str, arguments)], cwd, environment)

    def _ordered(self, program: str, arguments: list[str], cwd: Path, environment: dict[str, str]) -> Done:
        stdin, stdout = self._driver.stdin, self._driver.stdout
        assert stdin is not None
        assert stdout is not None
        with tempfile.NamedTemporaryFile(suffix=".txt") as output:
            order = {
                "program": program,
                "arguments": arguments,
                "cwd": str(cwd),
                "environment": environment,
                "output": output.name,
            }
            print(json.dumps(order), file=stdin, flush=True)
            status = int(stdout.readline())
            return Done(status, Path(output.name).read_text(encoding="utf-8"))


def drive() -> None:
    """Read orders, fork for each, answer with its exit status."""
    for name in PRELOADED:
        importlib.import_module(name)
    # A run collects garbage several times, pytest's own end included; what was loaded here need not be searched anew.
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.exit(_run(order))
        _, waited = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(waited), flush=True)


def _run(order: dict[str, object]) -> int:
    """The run itself, in the fork."""
    output = os.open(str(order["output"]), os.O_WRONLY)
    for number in (1, 2):
        os.dup2(output, number)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - lives as long as the process
    for name in CLEARED:
        os.environ.pop(name, None)
    os.environ.update(dict(order["environment"]))  # type: ignore[call-overload]
    os.chdir(str(order["cwd"]))
    arguments: list[str] = list(order["arguments"])  # type: ignore[call-overload]
    if order["program"] == "phasegate":
        return int(importlib.import_module("phasegate.cli").main(arguments))
    return int(pytest.main(arguments))


if __name__ == "__main__":
    drive()
