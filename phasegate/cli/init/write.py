"""Writing the starter kit: all of it or nothing, and never over a file that is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from phasegate.cli.init.kit import KitFile
from phasegate.core.atomic_write import write_atomic


class InTheWayError(Exception):
    """Files stand where the kit would go; one line that names them."""


def standing(files: Sequence[KitFile], folder: Path) -> list[Path]:
    """The kit's paths at which the folder has something else already."""
    return [one.path for one in files if _is_other(folder / one.path, one.text)]


def write_kit(files: Sequence[KitFile], folder: Path) -> list[Path]:
    """Write every file that is not there yet; returns the paths written, relative to the folder.

    A failure removes what was written so far, folders included, so that a second try finds what the first one found.

    Raises:
        InTheWayError: some file is there with another content.
        OSError: the folder cannot be written.
    """
    other = standing(files, folder)
    if other:
        names = ", ".join(str(path) for path in other[:3]) + (f" and {len(other) - 3} more" if len(other) > 3 else "")
        raise InTheWayError(
            f"{folder}: {names} would be overwritten; nothing was written. Move them away, or call init in an empty "
            "folder and take over what you need"
        )
    missing = [one for one in files if not (folder / one.path).exists()]
    undo = _Undo()
    try:
        for one in missing:
            undo.write(folder / one.path, one.text)
    except BaseException:
        undo.all()
        raise
    return [one.path for one in missing]


def _is_other(path: Path, text: str) -> bool:
    if path.is_dir() or (path.is_symlink() and not path.exists()):
        return True
    if not path.exists():
        # A file where a folder has to be.
        return any(parent.is_file() for parent in path.parents)
    try:
        return path.read_text(encoding="utf-8") != text
    except UnicodeDecodeError:
        return True


class _Undo:
    """Remembers what was made, in order."""

    def __init__(self) -> None:
        self._made: list[Path] = []

    def write(self, path: Path, text: str) -> None:
        self._make_folder(path.parent)
        write_atomic(path, text)
        self._made.append(path)

    def _make_folder(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir()
            self._made.append(one)

    def all(self) -> None:
        """Remove it again, newest first."""
        for path in reversed(self._made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
