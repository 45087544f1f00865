"""The command line: ``phasegate COMMAND``. Each command lives in a module of its own, imported when it is used."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from phasegate import __version__
from phasegate.core.faults import guarded
from phasegate.gate.exit_status import NOT_MEASURED, PYTEST_NOT_MEASURED

COMMANDS = {
    "probe": ("phasegate.cli.probe", "measure one or a few requests and draw their two phases"),
    "compare": ("phasegate.cli.compare", "judge one set of results against another, without pytest"),
    "baselines": ("phasegate.cli.baselines", "list, show, compare, prune and check stored baselines"),
    "decide": ("phasegate.cli.decide", "measure a workload; write which phase binds it and what each lever would save"),
    "explain": ("phasegate.cli.explain", "say which phase takes the time in a result, and which lever helps"),
    "init": ("phasegate.cli.init.command", "write a measuring suite into a repository"),
    "ci": ("phasegate.cli.ci.command", "run the suite in a pipeline, with settings from the environment"),
    "roofline": ("phasegate.cli.roofline", "a model's two phases against the hardware's limits"),
    "report": ("phasegate.cli.report", "write a report from a stored result"),
    "selftest": (
        "phasegate.cli.selftest",
        "prove that the gate finds planted slowdowns and leaves unchanged servers alone",
    ),
}
"""Command -> module with ``add_parser(subparsers)`` and ``run(args) -> int``, and what it is for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 2 for wrong usage, and that of `faults` where an error ended it."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if not word.startswith("-")), None)
    # `ci` ends with the statuses of pytest, in which 5 has another meaning.
    status = PYTEST_NOT_MEASURED if command == "ci" else NOT_MEASURED
    return guarded(f"phasegate {command}" if command in COMMANDS else "phasegate", lambda: _run(arguments), status)


def _run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="phasegate", description="Measure and gate an LLM server, phase by phase.")
    parser.add_argument("--version", action="version", version=f"phasegate {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module, help_text) in COMMANDS.items():
        if name == wanted:
            importlib.import_module(module).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=help_text)
    args = parser.parse_args(arguments)
    return int(importlib.import_module(COMMANDS[args.command][0]).run(args))


if __name__ == "__main__":
    sys.exit(main())
