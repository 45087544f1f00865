"""Folders of sessions: ``baselines/<fingerprint>/<session>.json``, and ``baselines/pinned/<label>/<fingerprint>/``.

Sessions of one update appear together or not at all. They are written and synced in a hidden folder of their own; one
rename of that folder commits them, and only then do the files move to their places. A reader looks into a committed
folder as well, so that a writer killed at any moment leaves either the old baseline or the new one; the next writer
finishes the move. Nothing is ever overwritten.

Writers of one folder take turns, and a reader lists it between two of them (`lock`). Contents are read after the lock
was given back, so that nobody waits for a long reading: only the one move of a committed file can come between, and
its name says where to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegate.core.naming import path_name
from phasegate.core.session import Session
from phasegate.store.lock import FolderBusyError, locked
from phasegate.store.session_file import InvalidBaselineError, parse_session, session_text

PINNED = "pinned"
"""The folder under which pinned baselines live, one folder for each label."""

_INCOMING, _COMMITTED = ".incoming-", ".committed-"

_READINGS = 5
"""How often a folder is read anew because files that it listed were deleted meanwhile, before that is an error."""


class BaselineExistsError(ValueError):
    """A session that is already stored. The message is one line."""


class _GoneError(InvalidBaselineError):
    """A file that is no longer there."""


def read_session(path: Path) -> Session:
    """The session in a file; the file is never touched.

    Raises:
        InvalidBaselineError: it cannot be read or used; the message is one line that names the file.
    """
    try:
        text = listed_bytes(path).decode("utf-8")
    except FileNotFoundError as error:
        raise _GoneError(f"{path}: cannot be read: {error.strerror}") from None
    except OSError as error:
        raise InvalidBaselineError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidBaselineError(f"{path}: not text in UTF-8 (byte {error.start})") from None
    return parse_session(text, str(path))


def listed_bytes(path: Path) -> bytes:
    """What is in a file that `session_paths` listed; also where a writer has moved it to its place since.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if not path.parent.name.startswith(_COMMITTED):
            raise
        return (path.parent.parent / path.name).read_bytes()


@dataclass(frozen=True, slots=True)
class BaselineStore:
    """All baselines under one folder.

    Attributes:
        root: usually ``baselines``; it need not exist.
    """

    root: Path

    def folder(self, fingerprint: str, pinned: str | None = None) -> Path:
        """Where sessions of a fingerprint live; rolling ones, or those pinned under a label.

        Raises:
            ValueError: one of them cannot be the name of a folder.
        """
        return self._top(pinned) / path_name(fingerprint, "the fingerprint")

    def _top(self, pinned: str | None) -> Path:
        return self.root if pinned is None else self.root / PINNED / path_name(pinned, "the label of a pinned baseline")

    def fingerprints(self, pinned: str | None = None) -> list[str]:
        """Fingerprints that have at least one session."""
        top = self._top(pinned)
        if not top.is_dir():
            return []
        return sorted(path.name for path in top.iterdir() if _is_visible(path) and session_paths(path))

    def pins(self) -> list[str]:
        """Labels of pinned baselines."""
        top = self.root / PINNED
        if not top.is_dir():
            return []
        return sorted(path.name for path in top.iterdir() if _is_visible(path))

    def read(self, fingerprint: str, pinned: str | None = None) -> list[Session]:
        """Sessions of a fingerprint, oldest first; empty where none is stored.

        Raises:
            InvalidBaselineError: one of them cannot be used; it is not skipped, for a gate with a hole looks shut.
        """
        folder = self.folder(fingerprint, pinned)
        for one in (self.root, folder):
            if one.exists() and not one.is_dir():
                raise InvalidBaselineError(f"{one}: is a file, where a folder of baselines is looked for; move it away")
        return read_folder(folder)

    def add(
        self, sessions: Sequence[Session], *, pinned: str | None = None, commit: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Store sessions of one fingerprint: all of them or none. Returns their paths.

        Raises:
            BaselineExistsError: a session of that id is already stored.
            FolderBusyError: another process writes there, and does not end.
            ValueError: no session, several fingerprints, two equal ids, a sample that must not be stored, or a name
                that no file or folder can have.
            OSError: the disk refused; what was stored before is untouched.
        """
        fingerprints = {session.fingerprint for session in sessions}
        names = [f"{path_name(session.session_id, 'the id of a session')}.json" for session in sessions]
        if len(fingerprints) != 1 or "" in fingerprints or len(set(names)) != len(names):
            raise ValueError("an update holds at least one session, each with its own id, all of one fingerprint")
        folder = self.folder(fingerprints.pop(), pinned)
        texts = {
            name: session_text(session, commit=commit) for name, session in zip(names, sessions, strict=True)
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, alone=True):
            _refuse_stored(folder, names)
            _clear(folder)
            committed = _commit(folder, texts)
            # They are stored now, whatever comes: the next writer finishes what cannot be finished here.
            with contextlib.suppress(OSError):
                _sync_folder(folder)
                _settle(folder)
            return [path if path.exists() else committed / path.name for path in (folder / name for name in names)]


def _is_visible(path: Path) -> bool:
    """Whether it is a folder that could have been made here: a hidden one is somebody else's."""
    return path.is_dir() and not path.name.startswith(".")


def read_folder(folder: Path) -> list[Session]:
    """All sessions of a folder, oldest first; empty where the folder does not exist.

    Raises:
        InvalidBaselineError: one of them cannot be used, the folder cannot be read, or a writer holds it for too long.
    """
    sessions = [session for _, session in read_files(folder)]
    return sorted(sessions, key=lambda session: (session.recorded_at, session.session_id))


def read_files(folder: Path) -> list[tuple[Path, Session]]:
    """Every file of a folder with its session, as they stood together at one moment.

    Raises:
        InvalidBaselineError: as `read_folder`.
    """
    for left in reversed(range(_READINGS)):
        paths = session_paths(folder)
        try:
            return [(path, read_session(path)) for path in paths]
        except _GoneError:
            if not left:
                raise
    raise AssertionError


def session_paths(folder: Path) -> list[Path]:
    """Files of a folder that are sessions, those of a committed update included; empty where it does not exist.

    Raises:
        InvalidBaselineError: the folder cannot be read, or a writer holds it for too long.
    """
    try:
        with locked(folder, alone=False):
            return _listed(folder)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        if isinstance(error, FolderBusyError):
            raise InvalidBaselineError(str(error)) from None
        return []  # a ValueError: a name with a zero byte in it, which no folder has
    except OSError as error:
        raise InvalidBaselineError(f"{folder}: cannot be read: {error.strerror}") from None


def _listed(folder: Path) -> list[Path]:
    # Committed folders first: a file that a writer without a lock moves meanwhile is then found at its place.
    found = {path.name: path for committed in _hidden(folder, _COMMITTED) for path in _json(committed)}
    found.update({path.name: path for path in _json(folder)})
    return [found[name] for name in sorted(found)]


def _json(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (folder / one.name for one in entries if one.name.endswith(".json") and one.name[0] != ".")


def _hidden(folder: Path, prefix: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith(prefix))


def leftovers(folder: Path) -> list[Path]:
    """Hidden folders of updates that were killed before they were committed; nothing reads them.

    Taken for what they are only while no writer is at work: the next one removes them.
    """
    try:
        with locked(folder, alone=False):
            return _hidden(folder, _INCOMING)
    except (OSError, FolderBusyError):
        return []


def _refuse_stored(folder: Path, names: Sequence[str]) -> None:
    stored = {path.name for path in _listed(folder)}
    for name in names:
        if name in stored:
            raise BaselineExistsError(f"{folder / name}: already stored; sessions are never overwritten")


def _clear(folder: Path) -> None:
    """Finish, or remove, what writers that were killed left behind."""
    _settle(folder)
    for incoming in _hidden(folder, _INCOMING):
        shutil.rmtree(incoming, ignore_errors=True)


def _commit(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write the files and make them count, all at once; returns the folder in which they lie.

    Raises:
        OSError: the disk refused, and nothing was stored.
    """
    mark = f"{next(iter(texts)).removesuffix('.json')}-{os.getpid()}"
    incoming, committed = folder / f"{_INCOMING}{mark}", folder / f"{_COMMITTED}{mark}"
    try:
        os.mkdir(incoming)  # noqa: PTH102 - every step is one call of os, so that tests can stop before each
        for name, text in texts.items():
            _write_synced(incoming / name, text)
        _sync_folder(incoming)
        os.rename(incoming, committed)  # noqa: PTH104
    except OSError:
        shutil.rmtree(incoming, ignore_errors=True)
        raise
    return committed


def _settle(folder: Path) -> None:
    """Move the files of committed updates to their places."""
    for committed in _hidden(folder, _COMMITTED):
        # Where a file system has no locks, another writer may be at the same: what is gone was moved by it.
        for path in sorted(_json(committed)):
            with contextlib.suppress(FileNotFoundError):
                os.rename(path, folder / path.name)  # noqa: PTH104
        _sync_folder(folder)
        with contextlib.suppress(FileNotFoundError):
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


def prune(folder: Path, keep: int, *, delete: bool) -> list[Path]:
    """Files of all sessions but the ``keep`` newest, oldest first; with ``delete`` they are deleted.

    Raises:
        InvalidBaselineError: one of them cannot be read, so nobody knows how old it is.
        FolderBusyError: a writer holds the folder for too long.
        OSError: the disk refused.
    """
    with locked(folder, alone=True):
        if delete:
            _clear(folder)
        dated = sorted(
            (one.recorded_at, one.session_id, path)
            for path, one in ((path, read_session(path)) for path in _listed(folder))
        )
        old = [path for _, _, path in dated][: max(0, len(dated) - keep)]
        for path in old if delete else ():
            path.unlink()
        return old
