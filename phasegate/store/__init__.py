"""Baselines: accepted sessions on disk, one file each, readable by ``pytest-benchmark compare``.

`fingerprint` names the folder, `session_file` turns a session into text and back, `store` reads and writes folders so
that a crash at any moment leaves them whole.
"""

from phasegate.store.baseline_folder import BaselineExistsError, BaselineStore, read_session
from phasegate.store.fingerprint import fingerprint_of
from phasegate.store.session_file import InvalidBaselineError, parse_session, session_text

__all__ = [
    "BaselineExistsError",
    "BaselineStore",
    "InvalidBaselineError",
    "fingerprint_of",
    "parse_session",
    "read_session",
    "session_text",
]
