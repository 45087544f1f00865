"""The policy of a file, for every door that takes one: pytest and the commands."""

from __future__ import annotations

from pathlib import Path

from phasegate.core.settings_file import SettingsError
from phasegate.gate.policy import Policy
from phasegate.gate.policy_file import parse_policy


def read_policy(path: str | None, *, root: Path | None = None) -> Policy:
    """The policy of a file, or the built-in one.

    Args:
        path: as the user gave it; None for no file.
        root: what a relative path is relative to; None for the working directory.

    Raises:
        SettingsError: the file cannot be used; one line.
    """
    if path is None:
        return Policy()
    try:
        text = (root / path if root is not None else Path(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: the policy cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_policy(text, path)
