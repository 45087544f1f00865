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

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from phasegate.core.session import Session
    from phasegate.gate.policy import Policy
    from phasegate.gate.verdict import GateResult

USAGE = 2

NOTHING = "name the folder or file that holds the results of the run"
STRANGERS = "compare runs of one tool with the same load, lengths and endpoint"
"""What to do where nothing was found, and where nothing could be matched."""

ELSEWHERE = "correct the path, or keep the results of an accepted build there"
"""What to do where a file is missing as a baseline, which no run of pytest would write."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "compare",
        help="judge one set of results against another, without pytest",
        description=(
            "Judge CANDIDATE against BASELINE. Each is a session file, a folder of them, CSV with the columns "
            "session,workload,metric,value (one row a request, seconds), or a result file of vLLM bench serve, "
            "SGLang bench_serving, AIPerf, GuideLLM, InferenceX or trtllm-bench; where it holds medians only, each "
            "file counts as one value."
        ),
    )
    parser.add_argument("baseline", metavar="BASELINE", help="accepted results")
    parser.add_argument("candidate", metavar="CANDIDATE", help="results under test")
    parser.add_argument("--policy", metavar="FILE", help="policy in YAML; default: built-in values")
    parser.add_argument("--paired", action="store_true", help="both were measured in one sitting, block by block")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Compare, print, and return the exit status."""
    from phasegate.core.settings_file import SettingsError
    from phasegate.gate.exit_status import cli_exit_status
    from phasegate.store.other_tools.reading import existing_path, named_path
    from phasegate.store.other_tools.result import WrongUsageError, refusal_record
    from phasegate.store.policy_source import read_policy

    try:
        policy = read_policy(args.policy)
        baseline, candidate = named_path(args.baseline), existing_path(args.candidate)
        result = compare(baseline, candidate, policy, paired=args.paired)
    except (SettingsError, WrongUsageError) as error:
        print(shown(f"phasegate compare: {error}"), file=sys.stderr)
        if args.json:
            print(json.dumps(refusal_record(error)))
        return USAGE
    if args.json:
        print(json.dumps(result.as_json(), allow_nan=False))
        if not result.verdict.green:
            print(f"phasegate compare: {result.verdict.value}: {shown(result.reason)}", file=sys.stderr)
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
    from phasegate.store.other_tools.reading import Loaded, load, sides_of
    from phasegate.store.other_tools.result import UnreadableResultError, WrongUsageError
    from phasegate.store.other_tools.unmatched import matched

    verdict, loaded = Verdict.INVALID_BASELINE, [Loaded(baseline)]
    try:
        if baseline.exists():
            loaded = [load(baseline, paired=paired, declared=policy.metrics)]
        verdict = Verdict.INVALID_RUN
        loaded.append(load(candidate, paired=paired, declared=policy.metrics))
    except WrongUsageError:
        raise
    except UnreadableResultError as error:
        return replace(refused(verdict, str(error)), refusal_remedy=error.remedy)
    old, new = sides_of(*loaded)
    remarks = list(dict.fromkeys(line for side in loaded for line in side.said()))
    if baseline.resolve() in candidate.resolve().parents:
        remarks.append(f"{candidate} lies in the baseline {baseline} and is judged by itself as well; move it out")
    if not new:
        return refused(Verdict.INVALID_RUN, f"{candidate}: no result file in it", remedy=NOTHING, warnings=remarks)
    stranger = _strangers(old, new) if all(side.runs for side in loaded) else None
    if stranger is not None:
        return refused(Verdict.NOT_COMPARABLE, stranger, remedy=STRANGERS, warnings=remarks)
    old, new, unmatched = matched(old, new)
    remarks += unmatched
    place = Place(looked_for=f"results in {baseline}", otherwise=ELSEWHERE if baseline.suffix else "")
    result = judge(old, new, policy, paired=paired, whole_baseline=True, place=place)
    return replace(result, warnings=(*remarks, *result.warnings))


def _strangers(old: Sequence[Session], new: Sequence[Session]) -> str | None:
    """That results of other tools have no workload in common, in one sentence; None where they have one."""
    sides = [list(dict.fromkeys(one.workload for run in side for one in run.measurements)) for side in (old, new)]
    if set(sides[0]) & set(sides[1]):
        return None
    known, found = (f"{side[0]}{f' and {len(side) - 1} more' * (len(side) > 1)}" for side in sides)
    return f"no workload is in both: the baseline has {known}, the run {found}"


def _print(result: GateResult) -> None:
    from phasegate.report.findings import print_result
    from phasegate.report.screen import Screen

    # A pipe has no width; rows must not be folded for it.
    print_result(result, Screen(width=None if sys.stdout.isatty() else 200))
