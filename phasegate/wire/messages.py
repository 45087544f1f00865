"""A server's words about a failure: found in whatever shape they come, shortened, on one line, without keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from phasegate.core.hiding import hide
from phasegate.core.showing import shown
from phasegate.wire.sse import EventParser

LONGEST = 500
"""Characters of a message that is kept: enough for a validation error, too little for a traceback."""

_PAGE = 20 * LONGEST
"""Characters of a message that are looked at."""

WORDLESS = "the server reported an error without a word about it"


def clean(text: str) -> str:
    """The text on one line, at most `LONGEST` characters, with everything that looks like a key hidden.

    What is longer than a page is cut where a word ends, so that no key is cut before it is looked for.
    """
    if len(text) > _PAGE:
        text = re.sub(r"\S+\Z", "", text[:_PAGE]) or text[:_PAGE]
    line = hide(" ".join(shown(text).split()))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def parse(text: str) -> Any:
    """The JSON value in the text, or None where none can be read (``null`` reads as None, too)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def of_body(body: bytes) -> str:
    """What an error page says: the message in its JSON, or in its first event, or the page itself."""
    text = body[:65536].decode("utf-8", "replace").strip().removeprefix("\ufeff")
    payload = parse(text)
    if payload is None and text.startswith(("data:", "event:", ":")):
        events = EventParser().feed(text.encode() + b"\n\n", 0.0)
        text = events[0].data if events else text
        payload = parse(text)
    return clean((of_payload(payload) if isinstance(payload, dict) else "") or text)


def of_payload(payload: Mapping[str, Any]) -> str:
    """The message of an error object: OpenAI's, vLLM's, FastAPI's or a bare one, with the parameter it names.

    Empty where the object holds no words.
    """
    error = payload.get("error")
    if isinstance(error, Mapping):
        payload = error
    elif isinstance(error, str):
        return clean(error)
    message = next((found for key in ("message", "detail", "msg") if (found := _words(payload.get(key)))), "")
    return clean(message + _particulars(payload, message))


def _words(value: object) -> str:
    """A message given as text, or as a list of findings with a place each."""
    if isinstance(value, str):
        return value
    return "; ".join(_findings(value)) if isinstance(value, list) else ""


def _findings(entries: list[Any]) -> Iterator[str]:
    for entry in entries[:5]:
        if isinstance(entry, Mapping) and isinstance(entry.get("msg"), str):
            place = entry.get("loc")
            parts = [str(part) for part in place if isinstance(part, (str, int))] if isinstance(place, list) else []
            yield f"{'.'.join(parts)}: {entry['msg']}" if parts else entry["msg"]


def _particulars(payload: Mapping[str, Any], message: str) -> str:
    """Parameter, code and type, where the message does not say them itself."""
    parts = []
    for key in ("param", "code", "type"):
        value = payload.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value and str(value)[:100] not in message:
            parts.append(f"{key}: {str(value)[:100]}")
    if not parts:
        return ""
    return f" ({', '.join(parts)})" if message else ", ".join(parts)
