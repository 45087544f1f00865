"""What a profile may not say of a request: headers that break it or hold a key, parameters that are its substance.

A file is no place for a secret, so nothing here ever shows the value of a header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from phasegate.core.hiding import hide
from phasegate.core.settings_file import Located, SettingsError, text

FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say where a request goes and how its bytes are laid out: the client's own (RFC 9110, RFC 9112)."""

SUBSTANCE = frozenset({"messages", "model", "prompt", "stream", "stream_options"})
"""Parameters that make a request what it is: another model, prompt or kind of answer would be measured."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A header's name (RFC 9110, section 5.6.2)."""

_OF_A_KEY = re.compile(
    r"(?i)(^|[-_])(api-?key|auth|authorization|cookie|credentials?|key|passw(or)?d|secret|token)($|[-_])"
)
"""Names of headers in which keys travel."""


def headers(given: Located) -> dict[str, str]:
    """The further request headers of a profile.

    Raises:
        SettingsError: a header that cannot be sent, is the client's own, or holds a key; one line.
    """
    told = given.values.get("headers", {})
    where = given.where("headers")
    if not isinstance(told, dict):
        raise SettingsError(f"{where}: headers is {type(told).__name__}; it must be header names with a text each")
    for name, value in told.items():
        problem = header_problem(name, value)
        if problem is not None:
            raise SettingsError(f"{where}: headers: {problem}")
    return dict(told)


def header_problem(name: object, value: object) -> str | None:
    """Why a header cannot stand in a profile, and what to do; None where it can. The value is not told."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{name!r} is no name of a header; it must be letters, digits and hyphens, such as x-team"
    if name.lower() in FRAMING:
        return f"{name} is written by the client itself; take it out"
    if not isinstance(value, str):
        return f"{name} has no text; write one in quotes, such as {name}: '3'"
    if not value.isascii() or not value.isprintable():
        return f"{name} holds a line break or another character that a header cannot carry; use plain ASCII"
    if _OF_A_KEY.search(name) or hide(value) != value:
        return (
            f"{name} looks like a key, and a file must hold none; "
            "name its header in key_header and the environment variable that holds it in key_env"
        )
    return None


def key_headers(endpoints: tuple[str, ...]) -> Callable[[Any], dict[str, str]]:
    """A converter for one header for all endpoints, or one for each that is named."""

    def convert(value: Any) -> dict[str, str]:
        named = value if isinstance(value, dict) else dict.fromkeys(endpoints, value)
        if not set(named) <= set(endpoints):
            raise ValueError
        for header in named.values():
            if not _NAME.fullmatch(text(header)) or header.lower() in FRAMING:
                raise ValueError
        return {endpoint: header.lower() for endpoint, header in named.items()}

    return convert


def refuse_substance(given: Located, key: str, names: tuple[str, ...] | Mapping[str, Any]) -> None:
    """Refuse parameters of ``force`` or ``omit`` without which a request is another one.

    Raises:
        SettingsError: one line.
    """
    found = sorted(SUBSTANCE & set(names))
    if found:
        hint = "; include_usage: false leaves stream_options out" if found == ["stream_options"] else ""
        raise SettingsError(
            f"{given.where(key)}: {key} names {', '.join(found)}, which every request carries as measured; "
            f"take {'it' if len(found) == 1 else 'them'} out{hint}"
        )
