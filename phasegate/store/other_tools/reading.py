"""One side of a comparison from a path: a file, a folder of files, or a folder of runs; the tool is found out.

The suffix says whether a file is a table, YAML or JSON; which tool wrote it follows from what it holds, because people
rename result files. Nothing in a folder that looks like a result is skipped, except a run's other formats: a gate that
leaves out what it cannot read would judge less than it was given.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from phasegate.core.session import Session
from phasegate.gate.facts import MetricFacts
from phasegate.store.baseline_folder import listed_bytes
from phasegate.store.other_tools import (
    aiperf,
    aiperf_summary,
    csv_table,
    guidellm,
    guidellm_table,
    inferencex,
    sglang_bench,
    trtllm_bench,
    vllm_bench,
)
from phasegate.store.other_tools.folders import RUN_FILES, SUFFIXES, kind_of, result_files, stem_of
from phasegate.store.other_tools.other_files import not_a_result
from phasegate.store.other_tools.result import (
    REPORT_HELP,
    REPORT_REMEDY,
    UnreadableResultError,
    WrongUsageError,
    json_lines,
)
from phasegate.store.other_tools.runs import Remark, Run, few_spans, remarks_of, repeated, sessions_of
from phasegate.store.session_file import InvalidBaselineError, load_json, parse_session

# SGLang first: its results have all keys of vLLM's.
_TOOLS = (sglang_bench, vllm_bench, guidellm, inferencex, trtllm_bench)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files of one side hold, before the workloads of other tools have names.

    Attributes:
        path: where it was read.
        sessions: of our own files and tables.
        runs: of other tools.
        remarks: what a reader must know of the files.
    """

    path: Path
    sessions: tuple[Session, ...] = ()
    runs: tuple[Run, ...] = ()
    remarks: tuple[Remark, ...] = ()

    def said(self) -> list[str]:
        """The remarks, one line for each."""
        return remarks_of([*self.remarks, *(one for run in self.runs for one in run.remarks)])


def named_path(text: str) -> Path:
    """The path that a user wrote.

    Raises:
        WrongUsageError: it is empty, which would mean the working directory.
    """
    if not text:
        raise WrongUsageError("an empty path: is a variable unset?", "set the variable", says_remedy=True)
    return Path(text)


def existing_path(text: str) -> Path:
    """The path that a user wrote, of a file or folder that is there.

    Raises:
        WrongUsageError: it is empty, or nothing is there.
    """
    path = named_path(text)
    if not path.exists():
        raise WrongUsageError(f"{path}: no such file or folder", "correct the path")
    return path


def read_side(path: Path, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None) -> list[Session]:
    """All sessions that a path holds, oldest first; empty for a folder without result files.

    Raises:
        WrongUsageError, UnreadableResultError: as `load` does.
    """
    return sides_of(load(path, paired=paired, declared=declared))[0]


def sides_of(*loaded: Loaded) -> list[list[Session]]:
    """The sessions of several sides, oldest first, with equal names for equal workloads of other tools."""
    foreign = sessions_of([side.runs for side in loaded])
    return [
        sorted([*side.sessions, *sessions], key=lambda one: one.recorded_at)
        for side, sessions in zip(loaded, foreign, strict=True)
    ]


def load(path: Path, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None) -> Loaded:
    """What a path holds; nothing for a folder without result files.

    Args:
        path: an existing file or folder.
        paired: read tables by their ``block`` column.
        declared: metrics that a policy names.

    Raises:
        WrongUsageError: the path holds folders of sessions, or a table has no ``block`` column although ``paired``.
        UnreadableResultError: a file cannot be used; the message is one line that names it.
    """
    try:
        files = result_files(path)
    except InvalidBaselineError as error:
        raise UnreadableResultError(str(error), "restore the file or record it again", says_remedy=True) from None
    except OSError as error:
        raise UnreadableResultError(f"{path}: cannot be read: {error.strerror}", "see its permissions") from None
    sessions: list[Session] = []
    runs: list[Run] = []
    remarks: list[Remark] = []
    for file in files:
        found = _read_file(file, path, paired, declared)
        own = found.sessions
        if len(files) > 1 and len(own) > 1:
            # Tables number their sessions from 1, each file anew.
            own = tuple(replace(one, session_id=f"{file.stem}/{one.session_id}") for one in own)
        sessions += own
        runs += found.runs
        remarks += found.remarks
    names = Counter([*(one.session_id for one in sessions), *(one.run_id for one in runs)])
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise UnreadableResultError(f"{path}: the session {twice[0]!r} is in it twice", "take one of the two away")
    return Loaded(path, tuple(sessions), tuple(runs), (*remarks, *repeated(runs), *few_spans(runs)))


def _read_file(path: Path, side: Path, paired: bool, declared: Mapping[str, MetricFacts] | None) -> Loaded:
    text = _text(path)
    if not text.strip():
        raise UnreadableResultError(f"{path}: the file is empty; nothing was measured")
    try:
        kind = _kind(path, text)
        if kind == ".csv":
            return _read_table(text, path, side, paired, declared)
        if kind in (".yaml", ".yml"):
            return _of_document(_load_yaml(text, path), path, side)
        return _read_json(text, path, side)
    except InvalidBaselineError as error:
        raise UnreadableResultError(str(error), "restore the file or record it again", says_remedy=True) from None


def _text(path: Path) -> str:
    try:
        data = listed_bytes(path)
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
        # As reading a text does: one end of line, whatever system wrote it.
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableResultError(f"{path}: cannot be unpacked; it is cut off or not packed by gzip") from None
    except OSError as error:
        raise UnreadableResultError(f"{path}: cannot be read: {error.strerror}", "see its permissions") from None
    except UnicodeDecodeError as error:
        said = f"{path}: not text in UTF-8 (byte {error.start})"
        raise UnreadableResultError(said, "save it as UTF-8") from None


def _kind(path: Path, text: str) -> str:
    """By the suffix; other suffixes say nothing, so there the first character decides.

    Raises:
        UnreadableResultError: it is HTML or XML.
    """
    kind = kind_of(path)
    if kind in (*SUFFIXES, ".yaml", ".yml"):
        return kind
    start = text.lstrip()[:1]
    if start == "<":
        raise UnreadableResultError(f"{path}: is a page for readers", "name the .json or the sessions of that run")
    return ".json" if start in ("{", "[") else ".csv"


def _read_table(text: str, path: Path, side: Path, paired: bool, declared: Mapping[str, MetricFacts] | None) -> Loaded:
    if guidellm_table.recognises(text):
        return Loaded(path, runs=(guidellm_table.read(text, str(path), _run_id(path, side)),))
    if aiperf_summary.recognises_table(text):
        return Loaded(path, runs=(aiperf_summary.read_table(text, path, _run_id(path, side)),))
    table = csv_table.read(text, str(path), paired=paired, declared=declared)
    return Loaded(path, table.sessions, remarks=table.remarks)


def _read_json(text: str, path: Path, side: Path) -> Loaded:
    if kind_of(path) == ".jsonl" or _is_lines(text):
        return _of_lines(list(json_lines(text, str(path), _load)), path, side)
    document = _load(text, str(path))
    if isinstance(document, dict) and str(document.get("schema")).startswith("phasegate-report/"):
        raise UnreadableResultError(f"{path}: {REPORT_HELP}", REPORT_REMEDY)
    if isinstance(document, dict) and "phasegate" in document:
        return Loaded(path, (parse_session(text, str(path)),))
    return _of_document(document, path, side)


def _is_lines(text: str) -> bool:
    """Whether a text is JSON by lines, whatever it is called: some tools append one run a line to one file."""
    first, _, rest = text.strip().partition("\n")
    return first.startswith("{") and first.rstrip().endswith("}") and rest.lstrip().startswith("{")


def _of_document(document: Any, path: Path, side: Path) -> Loaded:
    if isinstance(document, list) and document and all(isinstance(one, dict) for one in document):
        return _of_lines(list(enumerate(document, start=1)), path, side, "item")
    if aiperf_summary.recognises(document):
        return Loaded(path, runs=(aiperf_summary.read(document, path, _run_id(path, side)),))
    for tool in _TOOLS:
        if tool.recognises(document):
            return Loaded(path, runs=(tool.read(document, str(path), _run_id(path, side)),))
    raise not_a_result(document, str(path))


def _of_lines(lines: Sequence[tuple[int, Any]], path: Path, side: Path, word: str = "line") -> Loaded:
    documents, stem = [document for _, document in lines], _run_id(path, side)
    if all(aiperf.recognises(document) for document in documents):
        return Loaded(path, runs=(aiperf.read(lines, path, stem),))
    for tool in _TOOLS:
        if all(tool.recognises(document) for document in documents):
            return Loaded(
                path, runs=tuple(tool.read(one, f"{path}: {word} {n}", f"{stem}:{n}") for n, one in lines)
            )  # fmt: skip
    raise not_a_result(documents[0], str(path))


def _load(text: str, source: str) -> Any:
    # SGLang writes an unlimited rate as Infinity; every number that is used as a measurement is checked by its reader.
    return load_json(text, source, allow_constants=True)


def _load_yaml(text: str, path: Path) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}: line {mark.line + 1}" if mark is not None else str(path)
        raise UnreadableResultError(f"{where}: not readable as YAML") from None


def _run_id(path: Path, side: Path) -> str:
    """What tells a run apart: the name of its file, or its folders where a tool gives every run's file one name."""
    if path.name not in RUN_FILES:
        return stem_of(path)
    folder = path.parent
    return folder.name if folder == side or path == side else folder.relative_to(side).as_posix()
