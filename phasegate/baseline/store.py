"""Folders of sessions: ``baselines/<fingerprint>/<session>.json``, and ``baselines/pinned/<label>/<fingerprint>/``.

Sessions of one update appear together or not at all. They are written and synced in a hidden folder of their own; one
rename of that folder commits them, and only then do the files move to their places. A reader looks into a committed
folder as well, so that a writer killed at any moment leaves either the old baseline or the new one; the next writer
finishes the move. Nothing is ever overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegate.baseline.session_file import InvalidBaselineError, parse_session, session_text
from phasegate.session import Session

PINNED = "pinned"
"""The folder under which pinned baselines live, one folder for each label."""

_INCOMING, _COMMITTED = ".incoming-", ".committed-"


class BaselineExistsError(ValueError):
    """A session that is already stored. The message is one line."""


def read_session(path: Path) -> Session:
    """The session in a file; the file is never touched.

    Raises:
        InvalidBaselineError: it cannot be read or used; the message is one line that names the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidBaselineError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidBaselineError(f"{path}: not text in UTF-8 (byte {error.start})") from None
    return parse_session(text, str(path))


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """All baselines under one folder.

    Attributes:
        root: usually ``baselines``; it need not exist.
    """

    root: Path

    def folder(self, fingerprint: str, pinned: str | None = None) -> Path:
        """Where sessions of a fingerprint live; rolling ones, or those pinned under a label."""
        return (self.root / PINNED / pinned if pinned else self.root) / fingerprint

    def fingerprints(self, pinned: str | None = None) -> list[str]:
        """Fingerprints that have at least one session."""
        top = self.root / PINNED / pinned if pinned else self.root
        if not top.is_dir():
            return []
        return sorted(path.name for path in top.iterdir() if path.is_dir() and session_paths(path))

    def pins(self) -> list[str]:
        """Labels of pinned baselines."""
        top = self.root / PINNED
        return sorted(path.name for path in top.iterdir() if path.is_dir()) if top.is_dir() else []

    def read(self, fingerprint: str, pinned: str | None = None) -> list[Session]:
        """Sessions of a fingerprint, oldest first; empty where none is stored.

        Raises:
            InvalidBaselineError: one of them cannot be used; it is not skipped, for a gate with a hole looks shut.
        """
        return read_folder(self.folder(fingerprint, pinned))

    def add(
        self, sessions: Sequence[Session], *, pinned: str | None = None, commit: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Store sessions of one fingerprint: all of them or none. Returns their paths.

        Raises:
            BaselineExistsError: a session of that id is already stored.
            ValueError: no session, several fingerprints, two equal ids, or a sample that must not be stored.
            OSError: the disk refused; what was stored before is untouched.
        """
        fingerprints = {session.fingerprint for session in sessions}
        names = [f"{session.session_id}.json" for session in sessions]
        if len(fingerprints) != 1 or "" in fingerprints or len(set(names)) != len(names):
            raise ValueError("an update holds at least one session, each with its own id, all of one fingerprint")
        folder = self.folder(fingerprints.pop(), pinned)
        stored = {path.name for path in session_paths(folder)}
        for name in names:
            if name in stored:
                raise BaselineExistsError(f"{folder / name}: already stored; sessions are never overwritten")
        texts = {
            name: session_text(session, commit=commit) for name, session in zip(names, sessions, strict=True)
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        _settle(folder)
        _commit(folder, texts)
        return [folder / name for name in names]


def read_folder(folder: Path) -> list[Session]:
    """All sessions of a folder, oldest first; empty where the folder does not exist.

    Raises:
        InvalidBaselineError: one of them cannot be used, or two carry one id.
    """
    sessions = [read_session(path) for path in session_paths(folder)]
    return sorted(sessions, key=lambda session: (session.recorded_at, session.session_id))


def session_paths(folder: Path) -> list[Path]:
    """Files of a folder that are sessions, those of a committed update included."""
    if not folder.is_dir():
        return []
    found = {path.name: path for path in folder.glob(f"{_COMMITTED}*/*.json")}
    found.update({path.name: path for path in folder.glob("*.json")})
    return [found[name] for name in sorted(found)]


def leftovers(folder: Path) -> list[Path]:
    """Hidden folders of updates that were killed before they were committed; nothing reads them."""
    return sorted(folder.glob(f"{_INCOMING}*")) if folder.is_dir() else []


def _commit(folder: Path, texts: Mapping[str, str]) -> None:
    mark = f"{next(iter(texts)).removesuffix('.json')}-{os.getpid()}"
    incoming, committed = folder / f"{_INCOMING}{mark}", folder / f"{_COMMITTED}{mark}"
    os.mkdir(incoming)  # noqa: PTH102 - every step is one call of os, so that tests can stop before each
    for name, text in texts.items():
        _write_synced(incoming / name, text)
    _sync_folder(incoming)
    os.rename(incoming, committed)  # noqa: PTH104
    _sync_folder(folder)
    _settle(folder)


def _settle(folder: Path) -> None:
    """Move the files of committed updates to their places."""
    for committed in sorted(folder.glob(f"{_COMMITTED}*")):
        for path in sorted(committed.glob("*.json")):
            os.rename(path, folder / path.name)  # noqa: PTH104
        _sync_folder(folder)
        os.rmdir(committed)  # noqa: PTH106


def _write_synced(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        rest = text.encode("utf-8")
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def older_than_newest(folder: Path, keep: int) -> list[Path]:
    """Files of all sessions but the ``keep`` newest, oldest first.

    Raises:
        InvalidBaselineError: one of them cannot be read, so nobody knows how old it is.
    """
    read = [(path, read_session(path)) for path in session_paths(folder)]
    dated = sorted((one.recorded_at, one.session_id, path) for path, one in read)
    return [path for _, _, path in dated][: max(0, len(dated) - keep)]
