"""One side of a comparison from a path: a file, a folder of files, or a folder of runs; the tool is found out.

The suffix says whether a file is a table or JSON; which tool wrote it follows from what it holds, because people rename
result files. Nothing in a folder that looks like a result is skipped: a gate that leaves out what it cannot read would
judge less than it was given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from phasegate.baseline.session_file import InvalidBaselineError, load_json, parse_session
from phasegate.baseline.store import read_listed, session_paths
from phasegate.gate.facts import MetricFacts
from phasegate.interop import aiperf, csv_table, guidellm, sglang_bench, vllm_bench
from phasegate.interop.result import REPORT_HELP, UnreadableResultError, WrongUsageError, json_lines
from phasegate.session import Session

KNOWN = (
    "a session file of phasegate, CSV with session,workload,metric,value, or a result of vLLM bench serve, "
    "SGLang bench_serving, AIPerf or GuideLLM"
)

_SUFFIXES = (".json", ".jsonl", ".csv")
_AIPERF_RECORDS = "profile_export.jsonl"

_FOLDERS_SAID = 3
"""Folders that a message names before it counts the rest."""


def named_path(text: str) -> Path:
    """The path that a user wrote.

    Raises:
        WrongUsageError: it is empty, which would mean the working directory.
    """
    if not text:
        raise WrongUsageError("an empty path: is a variable unset?")
    return Path(text)


def existing_path(text: str) -> Path:
    """The path that a user wrote, of a file or folder that is there.

    Raises:
        WrongUsageError: it is empty, or nothing is there.
    """
    path = named_path(text)
    if not path.exists():
        raise WrongUsageError(f"{path}: no such file or folder")
    return path


def read_side(path: Path, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None) -> list[Session]:
    """All sessions that a path holds, oldest first; empty for a folder without result files.

    Args:
        path: an existing file or folder.
        paired: read tables by their ``block`` column.
        declared: metrics that a policy names.

    Raises:
        WrongUsageError: the path holds folders of sessions, or a table has no ``block`` column although ``paired``.
        UnreadableResultError: a file cannot be used; the message is one line that names it.
    """
    sessions: list[Session] = []
    files = _files(path)
    for file in files:
        found = read_file(file, paired=paired, declared=declared)
        if len(files) > 1 and len(found) > 1:
            # Tables number their sessions from 1, each file anew.
            found = [replace(one, session_id=f"{file.stem}/{one.session_id}") for one in found]
        sessions += found
    repeated = [name for name, count in Counter(one.session_id for one in sessions).items() if count > 1]
    if repeated:
        raise UnreadableResultError(f"{path}: the session {repeated[0]!r} is in it twice")
    return sorted(sessions, key=lambda one: one.recorded_at)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    # Sessions last: what a writer moved to its place in between is then found together with the rest of its update.
    found = {one for one in path.iterdir() if one.suffix in _SUFFIXES and _visible(one)}
    try:
        found.update(session_paths(path))
    except InvalidBaselineError as error:
        raise UnreadableResultError(str(error)) from None
    if path / _AIPERF_RECORDS in found:
        # The other files in a folder of AIPerf are summaries and inputs of the same run.
        return [path / _AIPERF_RECORDS]
    if not found:
        found = set(path.glob(f"*/{_AIPERF_RECORDS}"))
    if not found:
        _refuse_folders(path)
    return sorted(found)


def _refuse_folders(path: Path) -> None:
    """Say so where not the folder but folders in it hold results."""
    folders = sorted(one.name for one in path.iterdir() if one.is_dir() and session_paths(one))
    if folders:
        more = len(folders) - _FOLDERS_SAID
        said = ", ".join(folders[:_FOLDERS_SAID]) + (f" and {more} more" if more > 0 else "")
        raise WrongUsageError(f"{path}: holds folders of sessions; name one of them: {said}")


def _visible(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def read_file(path: Path, *, paired: bool = False, declared: Mapping[str, MetricFacts] | None = None) -> list[Session]:
    """The sessions in one file.

    Raises:
        UnreadableResultError: it cannot be read, is of no known kind, or holds something unusable.
    """
    try:
        text = read_listed(path)
    except OSError as error:
        raise UnreadableResultError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UnreadableResultError(f"{path}: not text in UTF-8 (byte {error.start})") from None
    if not text.removeprefix("\ufeff").strip():
        raise UnreadableResultError(f"{path}: the file is empty; nothing was measured")
    try:
        if _is_table(path, text):
            return csv_table.read(text, str(path), paired=paired, declared=declared)
        return _read_json(text, path)
    except InvalidBaselineError as error:
        raise UnreadableResultError(str(error)) from None


def _is_table(path: Path, text: str) -> bool:
    """By the suffix; other suffixes say nothing, so there the first character decides."""
    if path.suffix in _SUFFIXES:
        return path.suffix == ".csv"
    return not text.lstrip().startswith(("{", "["))


def _read_json(text: str, path: Path) -> list[Session]:
    source, stem = str(path), _session_id(path)
    if path.suffix == ".jsonl":
        return _read_lines(list(json_lines(text, source, _load)), source, stem)
    document = _load(text, source)
    if isinstance(document, dict) and str(document.get("schema")).startswith("phasegate-report/"):
        raise UnreadableResultError(f"{source}: {REPORT_HELP}")
    if isinstance(document, dict) and "phasegate" in document:
        return [parse_session(text, source)]
    if vllm_bench.recognises(document):
        return [vllm_bench.read(document, source, stem)]
    if guidellm.recognises(document):
        return [guidellm.read(document, source, stem)]
    if aiperf.recognises_summary(document):
        return [aiperf.read_summary(document, source, stem)]
    if sglang_bench.recognises(document):
        return [sglang_bench.read(document, source, stem)]
    raise UnreadableResultError(f"{source}: not a result file that phasegate knows: it reads {KNOWN}")


def _load(text: str, source: str) -> Any:
    # SGLang writes an unlimited rate as Infinity; every number that is used as a measurement is checked by its reader.
    return load_json(text, source, allow_constants=True)


def _session_id(path: Path) -> str:
    # Runs of AIPerf all carry one file name; their folders tell them apart.
    return path.parent.name if path.name == _AIPERF_RECORDS else path.stem


def _read_lines(lines: list[tuple[int, Any]], source: str, stem: str) -> list[Session]:
    documents = [document for _, document in lines]
    if all(aiperf.recognises_record(document) for document in documents):
        return [aiperf.read_records(lines, source, stem)]
    for tool in (sglang_bench, vllm_bench):
        if all(tool.recognises(document) for document in documents):
            return [tool.read(document, f"{source}: line {n}", f"{stem}:{n}") for n, document in lines]
    raise UnreadableResultError(f"{source}: not a result file that phasegate knows: it reads {KNOWN}")
