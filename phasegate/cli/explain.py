"""``phasegate explain``: which phase takes the time in a result, which lever helps, and what does not.

A report is explained as its run explained itself, below the word with which that ended; anything else by the rules on
what was measured. Exit status: 0 explained, 2 wrong usage or a file that cannot be used, 4 explained alone because
``--before`` has nothing that could be compared. It judges nothing; that is what ``compare`` does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegate.core.showing import shown

if TYPE_CHECKING:
    from phasegate.core.session import Session
    from phasegate.diagnose import Diagnosis, Observations
    from phasegate.gate.policy import Policy
    from phasegate.gate.slo import Objective
    from phasegate.report.document.model import Document

USAGE = 2

ALONE = "nothing earlier was given to compare with; --before RESULT tells what got slower"
"""Said where no comparison was made, so that silence is not taken for an unchanged server."""

DERIVED = ("phasegate-report", "phasegate-situation")
"""Files that hold no sessions which a gate could compare."""

VOID = "nothing is explained: the numbers of this run prove nothing"
"""Said of a report whose run kept no diagnosis because it was invalid."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What is said of a result.

    Attributes:
        diagnosis: what takes the time; None where the numbers of the run prove nothing.
        verdict: of a report, the word with which its run ended, and its title; None for other results.
        notes: what a reader must know of what was not looked at.
        strangers: whether an earlier result was given with which nothing could be compared.
    """

    diagnosis: Diagnosis | None
    verdict: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    strangers: bool = False


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser = subparsers.add_parser(
        "explain",
        help="say which phase takes the time in a result, which lever helps, and what does not",
        description=(
            "Explain RESULT: a report of phasegate in JSON, the figures of a decision (NAME.json of phasegate decide "
            "--out), a session file, a folder of them, CSV with the columns session,workload,metric,value, or a result "
            "file of vLLM bench serve, SGLang bench_serving, AIPerf, GuideLLM, InferenceX or trtllm-bench. A report "
            "tells its verdict and what its own run found. With --before, also what made RESULT slower than that."
        ),
    )
    parser.add_argument("result", metavar="RESULT", help="what was measured")
    parser.add_argument("--before", metavar="RESULT", help="an earlier result to explain the change against")
    parser.add_argument(
        "--policy", metavar="FILE", help="policy in YAML that --before is judged by, as of compare; default: built in"
    )
    parser.add_argument("--slo", metavar="SLO", nargs="+", default=(), help="objectives, such as ttft:p95:500ms")
    parser.add_argument("--json", action="store_true", help="print the diagnosis as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Explain, print, and return the exit status."""
    from phasegate.gate.exit_status import CLI_STATUS
    from phasegate.gate.verdict import Verdict
    from phasegate.store.other_tools.result import UnreadableResultError, refusal_record
    from phasegate.store.policy_source import read_policy

    try:
        explained = explain(args.result, args.before, args.slo, read_policy(args.policy))
    except (UnreadableResultError, ValueError, FileNotFoundError) as error:
        print(shown(f"phasegate explain: {error}"), file=sys.stderr)
        if args.json:
            print(json.dumps(refusal_record(error)))
        return USAGE
    if args.json:
        print(json.dumps(_record(explained), allow_nan=False))
    else:
        _print(explained)
    return CLI_STATUS[Verdict.NOT_COMPARABLE] if explained.strangers else 0


def explain(
    result: str,
    before: str | None = None,
    slo: tuple[str, ...] | list[str] = (),
    policy: Policy | None = None,
) -> Explained:
    """What is said of the result at a path; ``policy`` is what decides whether it is slower than ``before``.

    Raises:
        FileNotFoundError, UnreadableResultError: a path cannot be used; one line.
        ValueError: an objective cannot be read; one line.
    """
    from phasegate.gate.slo import parse_objective
    from phasegate.store.policy_source import read_policy

    policy = policy or read_policy(None)
    objectives = [parse_objective(word, source="--slo") for word in " ".join(slo).split()]
    stored, remarks = _stored([path for path in (before, result) if path is not None], policy)
    earlier = _observations(before, objectives, stored) if before is not None else None
    # Of a report too, whose figures are read with care even where its own explanation is told.
    document, now = _document(result), _observations(result, objectives, stored)
    strangers = _strangers(now, earlier, result, before)
    if strangers is not None:
        earlier = None
    if document is not None:
        explained = _explain_report(document, result, earlier, objectives)
    else:
        sides = (stored.get(before or ""), stored.get(result)) if earlier is not None else (None, None)
        explained = _explain_measured(now, earlier, sides, policy)
        if before is None:
            explained = replace(explained, notes=(*explained.notes, ALONE))
    explained = replace(explained, notes=(*explained.notes, *remarks))
    if strangers is None:
        return explained
    notes = tuple(note for note in explained.notes if note != ALONE)
    return replace(explained, notes=(*notes, strangers), strangers=True)


def _explain_measured(
    now: Observations,
    earlier: Observations | None,
    sides: tuple[list[Session] | None, list[Session] | None],
    policy: Policy,
) -> Explained:
    """What was measured; beside earlier sessions by what the gate proves of the two, as ``phasegate compare`` does.

    Where the gate cannot decide, changes are told by their size, and a note has its word.

    Args:
        sides: the earlier sessions and those of now; None for a file that holds none.
    """
    from phasegate.diagnose import Proof, diagnose
    from phasegate.diagnose.from_gate import diagnose_gated
    from phasegate.gate.judge import judge
    from phasegate.store.other_tools.unmatched import matched

    if sides[0] is None or sides[1] is None:
        return Explained(diagnose(now, earlier))
    old, new, _ = matched(sides[0], sides[1])
    gate = judge(old, new, policy, whole_baseline=True)
    if gate.verdict.green or Proof.of(gate.findings).rows:
        return Explained(diagnose_gated(gate, old, new, now))
    return Explained(diagnose(now, earlier), None, (f"phasegate compare says {gate.verdict.value}: {gate.reason}",))


def _strangers(now: Observations, earlier: Observations | None, result: str, before: str | None) -> str | None:
    """That two results have no kind of request in common, in one sentence; None where they have or there is one."""
    if earlier is None or any(earlier.ask(one.name) for one in now.asks):
        return None
    return (
        f"nothing was compared with {before}, so what got slower since then is unknown: no kind of request is in both; "
        f"it has {_names(earlier)}, {result} has {_names(now)}"
    )


def _names(one: Observations) -> str:
    return ", ".join(ask.name for ask in one.asks) or "none that was sent alone"


def _explain_report(
    document: Document, path: str, before: Observations | None, objectives: list[Objective]
) -> Explained:
    """A report: its verdict, and what its run found; by the rules anew where something else is asked of it."""
    from phasegate.diagnose import diagnose
    from phasegate.report.document.model import BROKEN
    from phasegate.report.document_observations import observations_of_document
    from phasegate.report.stored_diagnosis import stored_diagnosis, unexplained, verdict_line

    verdict, stored = verdict_line(document), stored_diagnosis(document, path)
    if stored is None and (document.validity.invalid or verdict[0] in BROKEN):
        return Explained(None, verdict, (VOID,))
    if stored is None or before is not None or objectives:
        found = diagnose(observations_of_document(document, objectives, path), before)
        if stored is not None and before is None:
            # What the run's gate proved needs its rows, which the report's medians do not replace.
            found = replace(found, found=(*(one for one in stored.found if one.change), *found.found))
    else:
        found = stored
    if before is None:
        found = replace(found, unexplained=unexplained(document, found))
    compared = before is not None or (document.gate is not None and document.gate.compared > 0)
    return Explained(found, verdict, () if compared else (ALONE,))


def _document(path: str) -> Document | None:
    """The report at a path; None for every other kind of result."""
    from phasegate.report.document.codec import from_json

    kind, text = _own_json(Path(path))
    return from_json(text, path) if kind == "phasegate-report" else None


def _observations(path: str, objectives: list[Objective], stored: Mapping[str, list[Session]]) -> Observations:
    """What the result at a path measured: a report, the figures of a decision, or anything that ``compare`` reads."""
    from phasegate.diagnose import codec
    from phasegate.diagnose.from_runs import limits_of
    from phasegate.diagnose.from_sessions import observations_of_sessions
    from phasegate.report.document.codec import from_json
    from phasegate.report.document_observations import observations_of_document

    kind, text = _own_json(Path(path))
    if kind == "phasegate-report":
        return observations_of_document(from_json(text, path), objectives, path)
    if kind == "phasegate-situation":
        found = codec.from_json(text, path)
        return replace(found, limits=limits_of(objectives)) if objectives else found
    return observations_of_sessions(stored[path], objectives)


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


def _stored(paths: Sequence[str], policy: Policy) -> tuple[dict[str, list[Session]], list[str]]:
    """The sessions of every path that is no report and no decision, named alike, and what a reader must know of them.

    Raises:
        UnreadableResultError: a path holds none.
    """
    from phasegate.store.other_tools.reading import existing_path, load, sides_of
    from phasegate.store.other_tools.result import UnreadableResultError

    loaded = {
        path: load(existing_path(path), declared=policy.metrics)
        for path in paths
        if _own_json(Path(path))[0] not in DERIVED
    }
    found = dict(zip(loaded, sides_of(*loaded.values()), strict=True))
    for path, sessions in found.items():
        if not sessions:
            raise UnreadableResultError(f"{path}: no result file in it", "name the folder or file that holds results")
    return found, list(dict.fromkeys(line for one in loaded.values() for line in one.said()))


def _record(explained: Explained) -> dict[str, Any]:
    """What is said as plain values: the diagnosis, and the report's own word."""
    from phasegate.diagnose import Diagnosis
    from phasegate.report.diagnosis_lines import diagnosis_record

    word = explained.verdict[0] if explained.verdict is not None else None
    record = diagnosis_record(explained.diagnosis or Diagnosis(()))
    return {**record, "verdict": word, "notes": list(explained.notes)}


def _print(explained: Explained) -> None:
    from phasegate.report.gate_lines import WORD_WIDTH

    # A pipe has no width; lines are folded all the same, because they are sentences.
    for word, text in _lines(explained, shutil.get_terminal_size((120, 24)).columns):
        print(shown(f"{word:<{WORD_WIDTH}}{text}".rstrip()))


def _lines(explained: Explained, width: int) -> Iterator[tuple[str, str]]:
    """The verdict, the diagnosis, and the notes."""
    from phasegate.report.diagnosis_lines import diagnosis_lines, folded

    if explained.verdict is not None:
        word, title = explained.verdict
        yield from zip((word, *[""] * len(title)), folded(title, width), strict=False)
    if explained.diagnosis is not None:
        yield from diagnosis_lines(explained.diagnosis, width, full=True)
    for note in explained.notes:
        yield from (("", text) for text in folded(note, width))
