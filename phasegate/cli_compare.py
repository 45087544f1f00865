"""``phasegate compare``: the gate without pytest, on session files, tables and results of other tools.

Exit status: 0 pass or improved, 1 regression or SLO breach, 2 wrong usage, 3 inconclusive, 4 no baseline or not
comparable, 5 invalid run or baseline.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from phasegate.gate.policy import Policy
    from phasegate.gate.verdict import GateResult
    from phasegate.session import Session

USAGE = 2


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "compare",
        help="judge one set of results against another, without pytest",
        description=(
            "Judge CANDIDATE against BASELINE. Each is a session file, a folder of them, CSV with the columns "
            "session,workload,metric,value (one row a request, seconds), or a result file of vLLM bench serve "
            "(--save-detailed), SGLang bench_serving (--output-details), AIPerf or GuideLLM."
        ),
    )
    parser.add_argument("baseline", metavar="BASELINE", help="accepted results")
    parser.add_argument("candidate", metavar="CANDIDATE", help="results under test")
    parser.add_argument("--policy", metavar="FILE", help="policy in YAML; default: built-in values")
    parser.add_argument("--paired", action="store_true", help="both were measured in one sitting, block by block")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Compare, print, and return the exit status."""
    from phasegate.baseline.policy_source import read_policy
    from phasegate.gate.exit_status import cli_exit_status
    from phasegate.interop.reading import existing_path, named_path
    from phasegate.interop.result import WrongUsageError
    from phasegate.strict_yaml import SettingsError

    try:
        policy = read_policy(args.policy)
        baseline, candidate = named_path(args.baseline), existing_path(args.candidate)
        result = compare(baseline, candidate, policy, paired=args.paired)
    except (SettingsError, WrongUsageError) as error:
        print(f"phasegate compare: {error}", file=sys.stderr)
        return USAGE
    if args.json:
        print(json.dumps(result.as_json(), allow_nan=False))
    else:
        _print(result)
    return cli_exit_status(result.verdict, inconclusive_fails=policy.inconclusive_fails)


def compare(baseline: Path, candidate: Path, policy: Policy, *, paired: bool = False) -> GateResult:
    """Judge the results under one path against those under another; what cannot be read has its own verdict.

    Raises:
        WrongUsageError: a path or ``paired`` asks for something else than what is there; one line.
    """
    from phasegate.gate.judge import Place, judge
    from phasegate.gate.verdict import Verdict, refused
    from phasegate.interop.reading import read_side
    from phasegate.interop.result import UnreadableResultError, WrongUsageError

    old: list[Session] = []
    try:
        if baseline.exists():
            old = read_side(baseline, paired=paired, declared=policy.metrics)
    except WrongUsageError:
        raise
    except UnreadableResultError as error:
        return refused(Verdict.INVALID_BASELINE, str(error))
    try:
        new = read_side(candidate, paired=paired, declared=policy.metrics)
    except WrongUsageError:
        raise
    except UnreadableResultError as error:
        return refused(Verdict.INVALID_RUN, str(error))
    place = Place(looked_for=f"results in {baseline}")
    result = judge(old, new, policy, paired=paired, whole_baseline=True, place=place)
    return result if new else replace(result, reason=f"{candidate}: no result file in it, so nothing can be judged")


def _print(result: GateResult) -> None:
    from rich.console import Console

    from phasegate.report.findings import print_result

    # A pipe has no width; rows must not be folded for it.
    print_result(result, Console(width=None if sys.stdout.isatty() else 200))
