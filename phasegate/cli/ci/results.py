"""The folder of a pipeline's results: only what an earlier run wrote there is removed, known by a mark in the folder.

The mark names every result with the digest of its content. While a run is under way it names them without digests, so
that what a killed run leaves behind is still known. Whatever else has a name that a result needs is somebody else's:
the run is refused before it measures.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from phasegate.cli.ci.settings import OUT, PipelineError
from phasegate.core.atomic_write import UnwritableError, check_writable, os_words, write_atomic
from phasegate.store.baseline_folder import read_session
from phasegate.store.session_file import InvalidBaselineError

MARK = ".phasegate-results.json"

JUNIT, HTML, JSON, SUMMARY = "junit.xml", "report.html", "report.json", "summary.md"
COMMENT, GITHUB_BENCHMARK, BENCHER = "comment.md", "github-action-benchmark.json", "bencher.json"

FILES = (JUNIT, HTML, JSON, SUMMARY, COMMENT, GITHUB_BENCHMARK, BENCHER)
"""Every file of results."""

SESSIONS = "sessions"
"""The folder of the run's sessions."""


def make_room(out: Path) -> None:
    """Remove what an earlier run wrote and claim its names for this one; the folder is made where it is missing.

    Raises:
        PipelineError: something that no run wrote has such a name.
        UnwritableError: the folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        check_writable(out, OUT)
        known = _known(out)
        there = list(_there(out))
        for path in there:
            if not _is_ours(path, known, out):
                raise PipelineError(
                    f"{path} was not written by an earlier run, and this one would take its place; move it away, or "
                    f"name another folder for results with {OUT}"
                )
        for path in there:
            path.unlink()
        with contextlib.suppress(FileNotFoundError):
            (out / SESSIONS).rmdir()
        write_atomic(out / MARK, _text(dict.fromkeys((*FILES, SESSIONS))))
    except OSError as error:
        raise UnwritableError(f"{OUT} {out} cannot be written to: {os_words(error)}") from None


def sign(out: Path) -> None:
    """Note what the run wrote, at its end.

    Raises:
        OSError: the disk refused.
    """
    write_atomic(out / MARK, _text({str(path.relative_to(out)): _digest(path) for path in _there(out)}))


def _there(out: Path) -> Iterator[Path]:
    """Whatever has the name of a result, or lies in the folder of sessions."""
    yield from (path for path in (out / name for name in FILES) if path.is_symlink() or path.exists())
    sessions = out / SESSIONS
    if sessions.is_symlink() or (sessions.exists() and not sessions.is_dir()):
        yield sessions
    elif sessions.is_dir():
        yield from sorted(sessions.iterdir())


def _is_ours(path: Path, known: Mapping[str, str | None], out: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    name = str(path.relative_to(out))
    if known.get(name) is not None:
        return _digest(path) == known[name]
    if path.parent == out:
        return name in known
    # A killed run has named the folder only: its sessions tell by themselves, and a half-written file by its name.
    return SESSIONS in known and (_is_part(path) or _is_session(path))


def _is_part(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".part")


def _is_session(path: Path) -> bool:
    try:
        return f"{read_session(path).session_id}.json" == path.name
    except InvalidBaselineError:
        return False


def _known(out: Path) -> dict[str, str | None]:
    """Names in the mark, with digests, or None for those of a run that did not end; empty without a mark."""
    try:
        wrote = json.loads((out / MARK).read_text(encoding="utf-8"))["wrote"]
        return {str(name): digest if isinstance(digest, str) else None for name, digest in wrote.items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _text(wrote: Mapping[str, str | None]) -> str:
    note = "written by phasegate ci: results that its next run may remove; null while a run is under way"
    return json.dumps({"note": note, "wrote": dict(wrote)}, indent=1) + "\n"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
