"""The phase suite on real engines: ``python -m benchmarks.engine_runs [NAME ...]``

Each engine runs the suite in a process of its own (`_engine_suite`) with the workloads of ``fixtures/real-engines``;
what it measured is kept below the user's cache folder, and docs/engines.md is written from what is kept. Exit status:
0 when every engine ran and every law that was judged was found to hold, else 1: a law that stayed undecided is no
proof.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._engine_page import write_engines_page
from benchmarks._engine_recipes import RECIPES
from benchmarks._page import host_line, now_line, write_page
from benchmarks.engine_envs import known
from phasegate.engines.generated.store import cache_folder

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "engines.md"
WORKLOADS = ROOT / "fixtures" / "real-engines"
EMBEDDED = "embedded"
NAMES = (EMBEDDED, *RECIPES)

MINUTES = 30
"""Longest time for one engine; the slowest takes about 10 where every law is measured four times over."""

ARGUMENTS = {"vllm": "--enforce-eager"}
"""What an engine is given besides the suite's own flags. Compiling takes vLLM a minute more at each start."""


class RunError(RuntimeError):
    """The suite could not be run on an engine. The message is one line."""


def results_folder() -> Path:
    """Where the facts of the last run on each engine are kept."""
    return cache_folder() / "engine-results"


def suite_options(name: str, requests: int | None = None) -> list[str]:
    """The options of ``pytest perf_tests`` for an engine; a number of requests keeps the laws from asking for more.

    Raises:
        RunError: it is not installed.
    """
    options = ["--perf-engine", name, "--perf-workloads", str(WORKLOADS), "--perf-timeout", "300s"]
    options += ["--perf-concurrency", "1", "4"]
    if requests is not None:
        options += ["--perf-requests", str(requests)]
    if name == EMBEDDED:
        return options
    environment = known(name)
    if environment is None:
        raise RunError(f"{name} is not installed: python -m benchmarks.engine_envs {name}")
    options += ["--perf-engine-python", environment.python]
    return [*options, f"--perf-engine-args={ARGUMENTS[name]}"] if name in ARGUMENTS else options


def run_suite(name: str, requests: int | None = None) -> dict[str, Any]:
    """Run the suite on an engine and return its facts, which are kept as well.

    Raises:
        RunError: the engine is not installed, or the run ended without any facts.
    """
    options = suite_options(name, requests)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "facts.json"
        order = json.dumps({"engine": name, "options": options, "result": str(result)})
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks._engine_suite", order],
            cwd=ROOT, capture_output=True, text=True, timeout=MINUTES * 60,
        )  # fmt: skip
        if not result.exists():
            raise RunError(f"{name}: the suite ended without a result: {(done.stdout + done.stderr)[-800:]}")
        facts: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    environment = known(name) if name in RECIPES else None
    facts |= {"when": now_line(), "host": host_line(), "output": done.stdout[-20_000:]}
    if environment is not None:
        facts |= {"install_seconds": environment.seconds, "install_bytes": environment.size}
    write_page(results_folder() / f"{name}.json", json.dumps(facts, indent=1))
    return facts


def kept_results() -> dict[str, dict[str, Any]]:
    """Facts of the last run on each engine that has one."""
    paths = {name: results_folder() / f"{name}.json" for name in NAMES}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}


def unproven(facts: dict[str, Any]) -> list[str]:
    """Laws that a run judged and did not find to hold: broken ones, and those left undecided, as on a busy machine."""
    laws = facts.get("laws", [])
    return [f"{law['outcome']} {law['law']}: {law['reason']}" for law in laws if law["outcome"] != "PASS"]


def main(words: Sequence[str] | None = None) -> int:
    """Run the named engines, write the page, and say how it went."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_runs", description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--requests", type=int, help="of every cell, and no more for a law that is not decided")
    parser.add_argument("--page-only", action="store_true", help="write the page from what is kept; run nothing")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is written")
    args = parser.parse_args(words)
    unknown = sorted(set(args.engines) - set(NAMES))
    if unknown:
        parser.error(f"unknown engine {unknown[0]!r}; known: {', '.join(NAMES)}")
    failed = 0
    for name in () if args.page_only else args.engines or NAMES:
        try:
            facts = run_suite(name, args.requests)
        except RunError as error:
            failed += 1
            print(error, flush=True)
            continue
        failed += bool(unproven(facts) or facts.get("invalid") or not facts.get("cells"))
        words_of = ", ".join(f"{count} {word}" for word, count in facts["outcomes"].items())
        print(f"{name}: {words_of} in {facts['seconds']:.0f} s", flush=True)
    write_engines_page(args.page, kept_results(), RECIPES)
    print(f"wrote {args.page}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
