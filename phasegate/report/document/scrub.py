"""No secret leaves in a report: what looks like a credential is struck out of every text of a document."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from phasegate.report.document.model import Document
from phasegate.wire.messages import without_secrets

T = TypeVar("T")

STRUCK = "***"

SHORTEST = 4
"""A known secret shorter than this is not looked for: it would strike out ordinary words, and protects nothing."""

_IN_ADDRESS = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://)[^/\s@]+@")
"""User and password in an address."""

_IN_QUERY = re.compile(r"(?i)([?&](?:[\w-]*(?:key|token|secret|password|sig(?:nature)?))=)[^&\s'\"]+")
"""A credential among the parameters of an address."""


def scrubbed(document: Document, secrets: Collection[str] = ()) -> Document:
    """The same document without credentials.

    Args:
        document: as it was built.
        secrets: values that must not appear, such as the API key of the run.
    """
    known = [one for one in secrets if one and len(one) >= SHORTEST]
    found = _scrub(document, known)
    assert isinstance(found, Document)
    return found


def _scrub(value: Any, secrets: Collection[str]) -> Any:
    if isinstance(value, str):
        return scrub_text(value, secrets)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: _scrub(getattr(value, one.name), secrets) for one in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        return {scrub_text(str(key), secrets): _scrub(one, secrets) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_scrub(one, secrets) for one in value)
    return value


def scrub_text(text: str, secrets: Collection[str] = ()) -> str:
    """One text without credentials."""
    for secret in secrets:
        text = text.replace(secret, STRUCK)
    text = _IN_QUERY.sub(rf"\1{STRUCK}", _IN_ADDRESS.sub(rf"\1{STRUCK}@", text))
    return without_secrets(text)
