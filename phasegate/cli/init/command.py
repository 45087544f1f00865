"""``phasegate init``: a measuring suite in this repository, ready to run on the embedded engine."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from phasegate.cli.init.kit import KitError, kit
from phasegate.cli.init.write import InTheWayError, write_kit
from phasegate.core.showing import shown

WHAT = {
    "perf_tests": "claims about the server, one file per claim",
    "fixtures": "what is asked of it (workloads, load) and what decides (policy.yaml)",
    "baselines": "what it could do when it was last accepted",
    ".github": "a workflow that gates pull requests",
}
"""Top of a path -> what a reader finds there."""


def add_parser(subparsers: Any) -> None:
    """The words of the command line."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "init", help="write perf_tests/, fixtures/, baselines/ and a workflow into a repository"
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        help="the repository, made where it is missing; default: this folder",
    )
    parser.add_argument("--no-workflow", action="store_true", help="leave .github alone")


def run(args: argparse.Namespace) -> int:
    """Write the kit; exit status 0, or 2 with one line where that cannot be."""
    folder: Path = args.folder
    if folder.exists() and not folder.is_dir():
        return _refuse(f"{folder}: is a file; name the folder of a repository")
    try:
        written = write_kit(kit(workflow=not args.no_workflow), folder)
    except (KitError, InTheWayError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{folder}: cannot be written ({error.strerror}); nothing was left behind")
    if not written:
        print("everything is here already; nothing was written")
        return 0
    for top, what in WHAT.items():
        count = sum(1 for path in written if path.parts[0] == top)
        if count:
            print(shown(f"  {top:<12} {what}" + (f" ({count} files)" if count > 1 else "")))
    print()
    print(shown(_next(args.folder), lines=True))
    return 0


def _next(folder: Path) -> str:
    inside = "" if folder == Path() else f"cd {folder} && "
    lines = []
    if importlib.util.find_spec("xllamacpp") is None:
        lines.append("First, for the engine that needs no server of yours:  pip install 'phasegate[local]'")
    lines += [
        f"Measure the embedded engine, about two minutes:        {inside}pytest perf_tests",
        f"Measure your own server:                               {inside}pytest perf_tests --perf-base-url URL",
        f"Accept what it does now, and gate from then on:        {inside}pytest perf_tests --perf-base-url URL "
        "--update-baselines",
    ]
    return "\n".join(lines)


def _refuse(line: str) -> int:
    print(shown(f"phasegate init: {line}"), file=sys.stderr)
    return 2
