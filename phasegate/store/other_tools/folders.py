"""Which files of a folder are results: all that look like one, but each run once.

Tools write one run in several formats beside each other. The most detailed one is read: single requests before
summaries, JSON before YAML before CSV.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from phasegate.store.baseline_folder import session_paths
from phasegate.store.other_tools import aiperf_summary, guidellm_table
from phasegate.store.other_tools.result import WrongUsageError

SUFFIXES = (".json", ".jsonl", ".csv")
"""What looks like a result; with .gz behind it, too."""

_YAML = (".yaml", ".yml")
"""What is a result only where GuideLLM wrote it: settings have these suffixes as well."""

RUN_FILES = (
    "profile_export.jsonl",
    "profile_export_aiperf.json",
    "profile_export_aiperf.csv",
    "profile_export_genai_perf.json",
    "profile_export_genai_perf.csv",
)
"""Files of one run of AIPerf or GenAI-Perf, the most detailed first; others in its folder hold no results."""

_DEPTH = 6
"""How deep a sweep of AIPerf nests its runs: ``profile_runs/trial_0001/concurrency_8/profile_runs/run_0001``."""

_AGGREGATES = ("aggregate", "sweep_aggregate")

_FOLDERS_SAID = 3
"""Folders that a message names before it counts the rest."""

_HEAD = 100_000
"""Characters of a table or YAML file that show which tool wrote it."""


def kind_of(path: Path) -> str:
    """The suffix that says what a file holds, in lower case, that of a compressed file without its .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]


def stem_of(path: Path) -> str:
    """The name of a file without the suffix that says what it holds."""
    name = path.name[: -len(".gz")] if path.name.lower().endswith(".gz") else path.name
    return name[: -len(kind_of(path))] if kind_of(path) else name


def result_files(path: Path) -> list[Path]:
    """The files to read of a path: itself, or the results in a folder, in order.

    Raises:
        WrongUsageError: not the folder but folders in it hold results, and they may be anything.
        InvalidBaselineError: sessions in it cannot be read now.
    """
    if path.is_file():
        return [path]
    run = _run_file(path)
    if run is not None:
        return [run]
    visible = [one for one in path.iterdir() if one.is_file() and not one.name.startswith(".")]
    # Sessions last: what a writer moved to its place in between is then found together with the rest of its update.
    found = {one for one in visible if kind_of(one) in SUFFIXES or _is_guidellm_yaml(one)} | set(session_paths(path))
    if found:
        return sorted(_each_once(found))
    runs = sorted(_runs_below(path, _DEPTH))
    if not runs:
        _refuse_folders(path)
    return runs


def _run_file(folder: Path) -> Path | None:
    return next((folder / name for name in RUN_FILES if (folder / name).is_file()), None)


def _runs_below(folder: Path, depth: int) -> Iterable[Path]:
    for child in folder.iterdir():
        if child.is_dir() and not child.name.startswith(".") and child.name not in _AGGREGATES:
            run = _run_file(child)
            if run is not None:
                yield run
            elif depth > 1:
                yield from _runs_below(child, depth - 1)


def _each_once(found: set[Path]) -> Iterable[Path]:
    """The files without summaries and tables of runs that another of them holds in more detail."""
    kinds: dict[str, set[str]] = {}
    for one in found:
        kinds.setdefault(stem_of(one), set()).add(kind_of(one))
    for one in found:
        stem, kind = stem_of(one), kind_of(one)
        records = next((stem.removesuffix(end) for end in ("_aiperf", "_genai_perf") if stem.endswith(end)), None)
        if records is not None and ".jsonl" in kinds.get(records, ()):
            continue
        better = {".json"} if kind in _YAML else {".json", *_YAML} if kind == ".csv" and _is_foreign_table(one) else ()
        if not kinds[stem].intersection(better):
            yield one


def _head(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(_HEAD)
    except OSError:
        return ""


def _is_foreign_table(path: Path) -> bool:
    text = _head(path)
    try:
        return guidellm_table.recognises(text) or aiperf_summary.recognises_table(text)
    except csv.Error:
        return False


def _is_guidellm_yaml(path: Path) -> bool:
    return kind_of(path) in _YAML and any(line.startswith("benchmarks:") for line in _lines(path))


def _lines(path: Path) -> Iterable[str]:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            yield from file
    except OSError:
        return


def _refuse_folders(path: Path) -> None:
    """Say so where not the folder but folders in it hold results."""
    folders = sorted(one.name for one in path.iterdir() if one.is_dir() and _holds_results(one))
    if folders:
        more = len(folders) - _FOLDERS_SAID
        said = ", ".join(folders[:_FOLDERS_SAID]) + (f" and {more} more" if more > 0 else "")
        raise WrongUsageError(f"{path}: holds folders of sessions", f"name one of them: {said}")


def _holds_results(folder: Path) -> bool:
    return bool(session_paths(folder)) or any(
        one.is_file() and not one.name.startswith(".") and kind_of(one) in SUFFIXES for one in folder.iterdir()
    )
