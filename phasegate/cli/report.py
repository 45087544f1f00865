"""``phasegate report``: a report from a result that is stored already: a run's JSON report, or folders of sessions.

Exit status: 0; 2 for a result that cannot be read or a report that cannot be written. The verdict itself changes no
status here: it was said when it was measured.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from phasegate.report.document import Document

USAGE = 2

DEFAULT = "report.html"


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "report",
        help="write a report from a stored result",
        description=(
            "Write a report from RESULT: the .json that --perf-report wrote, or sessions (a file or folder, as "
            "phasegate compare reads them). The suffix of each -o says its format."
        ),
    )
    parser.add_argument("result", metavar="RESULT", help="a JSON report, a session file, or a folder of sessions")
    parser.add_argument(
        "-o", "--output", metavar="PATH", action="append",
        help=f".html, .md, .json or .csv; repeatable; - prints Markdown (default: {DEFAULT})",
    )  # fmt: skip
    parser.add_argument("--baseline", metavar="PATH", help="sessions to judge against; only where RESULT is sessions")
    parser.add_argument("--policy", metavar="FILE", help="policy in YAML for that; default: built-in values")
    parser.add_argument("--paired", action="store_true", help="both were measured in one sitting, block by block")


def run(args: argparse.Namespace) -> int:
    """Read, write, and say where."""
    from phasegate.core.settings_file import SettingsError
    from phasegate.report.document import UnreadableReportError
    from phasegate.report.files import ReportPathError, check_path, write_report
    from phasegate.store.other_tools.result import UnreadableResultError

    outputs = args.output or [DEFAULT]
    try:
        for path in outputs:
            if path != "-":
                check_path(Path(path), "-o")
        document = _read(args)
        for path in outputs:
            if path == "-":
                _print(document)
            else:
                write_report(document, Path(path))
                print(shown(f"report: {path}"))
    except (UnreadableReportError, UnreadableResultError, ReportPathError, SettingsError, OSError) as error:
        print(shown(f"phasegate report: {error}"), file=sys.stderr)
        return USAGE
    return 0


def _print(document: Document) -> None:
    from phasegate.report.as_markdown import render_markdown

    print(shown(render_markdown(document), lines=True), end="")


def _read(args: argparse.Namespace) -> Document:
    """The document of a JSON report, or of sessions."""
    from phasegate.report.document import from_json
    from phasegate.store.other_tools.reading import existing_path
    from phasegate.store.other_tools.result import UnreadableResultError

    path = existing_path(args.result)
    if path.is_file() and path.suffix == ".json":
        text = path.read_text(encoding="utf-8", errors="replace")
        if '"phasegate-report/' in text[:4096]:
            if args.baseline is not None:
                raise UnreadableResultError(f"--baseline {args.baseline}: {path} is a report, which is judged already")
            return from_json(text, str(path))
    return _of_sessions(args, path)


def _of_sessions(args: argparse.Namespace, path: Path) -> Document:
    from phasegate.gate.judge import Place, judge
    from phasegate.report.document.build import from_sessions
    from phasegate.store.other_tools.reading import Loaded, existing_path, load, sides_of
    from phasegate.store.other_tools.result import UnreadableResultError
    from phasegate.store.policy_source import read_policy

    policy = read_policy(args.policy)
    loaded = [Loaded(path), load(path, paired=args.paired, declared=policy.metrics)]
    if args.baseline is not None:
        loaded[0] = load(existing_path(args.baseline), paired=args.paired, declared=policy.metrics)
    baseline, candidate = sides_of(*loaded)
    if not candidate:
        raise UnreadableResultError(f"{path}: no result file here", "name the folder or file that holds results")
    remarks = list(dict.fromkeys(line for side in loaded for line in side.said()))
    result = None
    if args.baseline is not None:
        place = Place(looked_for=f"results in {args.baseline}")
        result = judge(baseline, candidate, policy, paired=args.paired, whole_baseline=True, place=place)
        result = replace(result, warnings=(*remarks, *result.warnings))
    else:
        for line in remarks:
            print(shown(f"phasegate report: {line}"), file=sys.stderr)
    words = ["phasegate", "report", args.result, *(["--baseline", args.baseline] if args.baseline else [])]
    return from_sessions(
        candidate,
        policy,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        baseline=baseline,
        result=result,
        paired=args.paired,
        commands=[shlex.join(words)],
    )
