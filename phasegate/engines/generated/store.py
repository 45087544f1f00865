"""Generated models on disk: made once, checked at every use, made again when damaged.

A file appears under its name only when it is complete (temporary file, then rename), beside a note of its size and
SHA-256. A lock keeps two processes from making the same file at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from phasegate.engines.base import EngineError
from phasegate.engines.generated.spec import ModelSpec

CACHE_VARIABLE = "PHASEGATE_CACHE_DIR"

Writer = Callable[[ModelSpec, Path], None]


def cache_folder() -> Path:
    """Where models are kept: `CACHE_VARIABLE`, else ``phasegate`` below the user's cache folder.

    Raises:
        EngineError: neither is known, as for a user without a home folder; one line.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "phasegate"
    try:
        return Path.home() / ".cache" / "phasegate"
    except RuntimeError:  # neither HOME nor an entry in the table of users says where it is
        raise EngineError(
            f"there is nowhere to keep the generated model: this user has no home folder; set {CACHE_VARIABLE} to a "
            "folder that can be written"
        ) from None


def ensure_model(spec: ModelSpec, folder: Path | None = None, write: Writer | None = None) -> Path:
    """The path of a whole model file for that spec, which is generated first where it is missing or damaged.

    Raises:
        EngineError: it cannot be written; one line with the folder and the remedy.
    """
    if write is None:
        from phasegate.engines.generated.gguf_file import write_gguf

        write = write_gguf
    home = folder or cache_folder()
    path = home / spec.file_name
    try:
        home.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not _is_whole(path):
                _generate(spec, path, write)
    except OSError as error:
        raise EngineError(
            f"cannot keep the generated model in {home}: {error.strerror or error}; "
            f"set {CACHE_VARIABLE} to a folder that can be written"
        ) from None
    return path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file of that name; waits for another process that has it."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _generate(spec: ModelSpec, path: Path, write: Writer) -> None:
    # The lock is ours, so what lies about was left by a process that was killed while it wrote.
    for stale in path.parent.glob(f".{path.stem}-*.part"):
        stale.unlink(missing_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        write(spec, part)
        note = {"size": part.stat().st_size, "sha256": sha256_of(part)}
        _note(path).unlink(missing_ok=True)
        part.replace(path)
        # The note comes last: without it the file does not count as whole.
        _note(path).write_text(json.dumps(note), encoding="utf-8")
    finally:
        part.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    """Whether size and SHA-256 are what the note says (0.2 s for 200 MB)."""
    try:
        note = json.loads(_note(path).read_text(encoding="utf-8"))
        return bool(path.stat().st_size == note["size"] and sha256_of(path) == note["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _note(path: Path) -> Path:
    return path.with_suffix(".json")


def sha256_of(path: Path) -> str:
    """Digest of a file's content, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
