"""No secret leaves in a report, and nothing that a reader cannot see: both go out of every text of a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from phasegate.core.hiding import hide
from phasegate.core.showing import shown
from phasegate.report.document.model import Document


def scrubbed(document: Document, secrets: Collection[str] = ()) -> Document:
    """The same document without credentials, and without characters that do not show.

    Args:
        document: as it was built.
        secrets: values that must not appear, such as the API key of the run.
    """
    found = _scrub(document, secrets)
    assert isinstance(found, Document)
    return found


def _scrub(value: Any, secrets: Collection[str]) -> Any:
    if isinstance(value, str):
        return shown(hide(value, *secrets), lines=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: _scrub(getattr(value, one.name), secrets) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        return {shown(hide(str(key), *secrets)): _scrub(one, secrets) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_scrub(one, secrets) for one in value)
    return value
