"""The Hugging Face form of a generated model on disk: made once, checked at every use, made again when damaged.

As for the GGUF file (see ``store``), the folder appears under its name only when it is complete, with a note of every
file's size and SHA-256 inside, and a lock keeps two processes from making it at once.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from phasegate.engines.base import EngineError
from phasegate.engines.generated.hf_folder import write_hf
from phasegate.engines.generated.spec import ModelSpec
from phasegate.engines.generated.store import CACHE_VARIABLE, cache_folder, locked, sha256_of

NOTE = "phasegate-files.json"


def ensure_hf_model(spec: ModelSpec, folder: Path | None = None) -> Path:
    """The path of a whole model folder for that spec; its weights are in bfloat16 whatever the spec says.

    Raises:
        EngineError: it cannot be written; one line with the folder and the remedy.
    """
    home = folder or cache_folder()
    path = home / folder_name(spec)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not _is_whole(path):
                _generate(spec, path)
    except OSError as error:
        raise EngineError(
            f"cannot keep the generated model in {home}: {error.strerror or error}; "
            f"set {CACHE_VARIABLE} to a folder that can be written"
        ) from None
    return path


def folder_name(spec: ModelSpec) -> str:
    """Readable name with the digest of the spec."""
    return f"{spec.file_name.removesuffix('.gguf')}-hf"


def _generate(spec: ModelSpec, path: Path) -> None:
    for stale in path.parent.glob(f".{path.name}-*.part"):
        shutil.rmtree(stale, ignore_errors=True)
    part = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part"))
    try:
        write_hf(spec, part)
        note = {one.name: {"size": one.stat().st_size, "sha256": sha256_of(one)} for one in sorted(part.iterdir())}
        (part / NOTE).write_text(json.dumps(note, indent=1), encoding="utf-8")
        part.chmod(0o755)
        shutil.rmtree(path, ignore_errors=True)
        part.replace(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _is_whole(path: Path) -> bool:
    try:
        note = json.loads((path / NOTE).read_text(encoding="utf-8"))
        return bool(note) and all(
            (path / name).stat().st_size == known["size"] and sha256_of(path / name) == known["sha256"]
            for name, known in note.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
