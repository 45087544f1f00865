"""``phasegate explain``: which phase takes the time in a result, which lever helps, and what does not.

Exit status: 0 explained, 2 wrong usage or a file that cannot be used. It judges nothing; that is what ``compare`` does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phasegate.gate.diagnose import Diagnosis, Situation
    from phasegate.gate.slo import Objective
    from phasegate.session import Session

USAGE = 2


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "explain",
        help="say which phase takes the time in a result, which lever helps, and what does not",
        description=(
            "Explain RESULT: a report of phasegate in JSON, the figures of a decision (NAME.json of phasegate decide "
            "--out), a session file, a folder of them, CSV with the columns session,workload,metric,value, or a result "
            "file of vLLM bench serve, SGLang bench_serving, AIPerf or GuideLLM. With --before, also what made it "
            "slower than that."
        ),
    )
    parser.add_argument("result", metavar="RESULT", help="what was measured")
    parser.add_argument("--before", metavar="RESULT", help="an earlier result to explain the change against")
    parser.add_argument("--slo", metavar="SLO", nargs="+", default=(), help="objectives, such as ttft:p95:500ms")
    parser.add_argument("--json", action="store_true", help="print the diagnosis as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Explain, print, and return the exit status."""
    from phasegate.interop.result import UnreadableResultError

    try:
        diagnosis = explain(args.result, args.before, args.slo)
    except (UnreadableResultError, ValueError, FileNotFoundError) as error:
        print(f"phasegate explain: {error}", file=sys.stderr)
        return USAGE
    if args.json:
        from phasegate.report.diagnosis_lines import diagnosis_record

        print(json.dumps(diagnosis_record(diagnosis), allow_nan=False))
    else:
        _print(diagnosis)
    return 0


def explain(result: str, before: str | None = None, slo: tuple[str, ...] | list[str] = ()) -> Diagnosis:
    """The diagnosis of the result at a path.

    Raises:
        FileNotFoundError, UnreadableResultError: a path cannot be used; one line.
        ValueError: an objective cannot be read; one line.
    """
    from phasegate.gate.diagnose import diagnose
    from phasegate.gate.slo import parse_objective

    objectives = [parse_objective(word, source="--slo") for word in " ".join(slo).split()]
    now = _situation(result, objectives)
    return diagnose(now, _situation(before, objectives) if before is not None else None)


def _situation(path: str, objectives: list[Objective]) -> Situation:
    """What the result at a path measured: a report, the figures of a decision, or anything that ``compare`` reads."""
    from phasegate.gate.diagnose import codec
    from phasegate.gate.diagnose.from_runs import limits_of
    from phasegate.gate.diagnose.from_sessions import situation_of_sessions
    from phasegate.report.document.codec import from_json
    from phasegate.report.document_situation import situation_of_document

    kind, text = _own_json(Path(path))
    if kind == "phasegate-report":
        return situation_of_document(from_json(text, path), objectives)
    if kind == "phasegate-situation":
        found = codec.from_json(text, path)
        return replace(found, limits=limits_of(objectives)) if objectives else found
    return situation_of_sessions(_sessions(path), objectives)


def _own_json(path: Path) -> tuple[str, str]:
    """The name of the schema and the text of a JSON file that has one; empty for every other kind of file."""
    if path.suffix != ".json" or not path.is_file():
        return "", ""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return "", ""  # The readers of other results say what is wrong with it.
    schema = document.get("schema") if isinstance(document, dict) else None
    return (schema.partition("/")[0], text) if isinstance(schema, str) else ("", "")


def _sessions(path: str) -> list[Session]:
    from phasegate.interop.reading import existing_path, read_side
    from phasegate.interop.result import UnreadableResultError

    sessions = read_side(existing_path(path))
    if not sessions:
        raise UnreadableResultError(f"{path}: no result file in it")
    return sessions


def _print(diagnosis: Diagnosis) -> None:
    from phasegate.report.diagnosis_lines import diagnosis_lines
    from phasegate.report.gate_lines import WORD_WIDTH

    # A pipe has no width; lines are folded all the same, because they are sentences.
    width = shutil.get_terminal_size((120, 24)).columns
    for word, text in diagnosis_lines(diagnosis, width, full=True):
        print(f"{word:<{WORD_WIDTH}}{text}".rstrip())
