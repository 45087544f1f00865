"""Files and folders in the machine's temporary folder; where it has none that can be used, one line says so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phasegate.engines.base import EngineError


def new_log(name: str) -> Path:
    """An empty file.

    Raises:
        EngineError: there is no temporary folder that can be written.
    """
    with _usable():
        handle, path = tempfile.mkstemp(prefix=f"phasegate-{name}-", suffix=".log")
    os.close(handle)
    return Path(path)


def new_folder(name: str) -> Path:
    """An empty folder.

    Raises:
        EngineError: there is no temporary folder that can be written.
    """
    with _usable():
        return Path(tempfile.mkdtemp(prefix=f"phasegate-{name}-"))


@contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise EngineError(
            f"an engine needs a temporary folder for its log: {why}; set TMPDIR to a folder that can be written"
        ) from None
