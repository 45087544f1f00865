"""Writing a file in one step: a reader, or a kill, sees the old one or the new one, never half of it.

Whether a folder takes files is found out by writing one: permissions say nothing of a full disk.
"""

from __future__ import annotations

import errno
import os
import resource
import tempfile
from pathlib import Path

_PROBE = b"\0" * 65_536
"""What is written to see whether there is room: as much as a small report needs."""


class UnwritableError(RuntimeError):
    """A place that takes no files. The message is one line with the option or variable that named it, and why."""


def check_writable(folder: Path, source: str) -> None:
    """Find out whether files can be written below a folder, by writing one; nothing is left behind.

    Args:
        folder: need not exist; then the first folder above it that does is tried.
        source: the option or variable that named it, for the message.

    Raises:
        UnwritableError: no file can be written there.
    """
    try:
        place = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        handle, name = tempfile.mkstemp(dir=place, prefix=".phasegate-", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_PROBE)
                file.flush()
                os.fsync(file.fileno())
        finally:
            Path(name).unlink()
    except OSError as error:
        error.filename = None  # of our own file, whose name says nothing to anybody
        raise UnwritableError(f"{source} {folder} cannot be written to: {os_words(error)}") from None


def write_atomic(path: Path, text: str) -> None:
    """Write a text beside its place, then rename it; the folder has to exist.

    Raises:
        OSError: the disk refused; what stood there stands there still, and nothing is left beside it.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        part.chmod(0o644)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def os_words(error: OSError) -> str:
    """A refusal of the operating system with the file it is about, in words that say what to do."""
    where = "" if error.filename is None else f"{error.filename}: "
    if error.errno in (errno.EMFILE, errno.ENFILE):
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"{where}too many open files (this process may have {soft}); raise the limit, as with ulimit -n 1024"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}the disk is full; make room, or name another place"
    if error.errno == errno.EFBIG:
        return f"{where}the file may not grow so large (ulimit -f); raise the limit, or name another place"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where}{error.strerror}; change the permissions, or name another place"
    return f"{where}{error.strerror or error}"
