"""Text in whatever shape it is sent: plain, in typed parts, in lists and objects of them, or as written-out JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from phasegate.core.timeline import Channel

TEXT_KEYS = ("text", "thinking", "reasoning", "summary", "content", "value", "parts", "refusal", "transcript")
"""Where a part keeps its text, by preference."""

ARGUMENT_KEYS = ("arguments", "input", "parameters", "args", "partial_json")
"""Where a call keeps what the model wrote for it."""

DEEPEST = 8
"""Levels of lists and objects that are looked into."""

_OF_REASONING = ("think", "reason", "thought", "summary")
_OF_CALLS = frozenset({"tool_use", "tool_call", "function_call", "function", "custom_tool_call"})


def text_in(value: object, depth: int = 0) -> str:
    """The text in a value of any shape, joined; empty where there is none, or none that can be read."""
    if isinstance(value, str) or depth > DEEPEST:
        return value if isinstance(value, str) else ""
    if isinstance(value, list):
        return "".join(text_in(entry, depth + 1) for entry in value)
    if isinstance(value, dict) and not is_sealed(value):
        return next((text for key in TEXT_KEYS if (text := text_in(value.get(key), depth + 1))), "")
    return ""


def is_sealed(part: Mapping[str, Any]) -> bool:
    """Whether a part's text is none of the model's words: encrypted, redacted, or the result of a tool."""
    kind = part.get("type")
    return isinstance(kind, str) and ("encrypted" in kind or "redacted" in kind or kind.endswith("_result"))


def content_in(content: object) -> Iterator[tuple[Channel, str]]:
    """The texts of a content field, each with its channel: plain text, one part, or a list of parts."""
    if isinstance(content, str):
        yield Channel.CONTENT, content
        return
    for part in content if isinstance(content, list) else [content]:
        channel = _channel_of(part) if isinstance(part, dict) else Channel.CONTENT
        yield channel, "".join(call_in(part)) if channel is Channel.TOOL else text_in(part)


def _channel_of(part: Mapping[str, Any]) -> Channel:
    kind = part.get("type")
    named = kind.lower() if isinstance(kind, str) else ""
    if named in _OF_CALLS:
        return Channel.TOOL
    unsaid = not named and "text" not in part and "thinking" in part
    if unsaid or part.get("thought") is True or any(word in named for word in _OF_REASONING):
        return Channel.REASONING
    return Channel.CONTENT


def call_in(call: object) -> tuple[str, str]:
    """Name and arguments of one call; arguments that come as a value are written out as JSON."""
    if not isinstance(call, dict):
        return "", ""
    inner = call.get("function") or call.get("custom")
    places = [one for one in (inner, call) if isinstance(one, dict)]
    names = (inner, *(one.get("name") for one in places))
    written = (arguments_in(one.get(key)) for one in places for key in ARGUMENT_KEYS)
    return next((name for name in names if isinstance(name, str)), ""), next(filter(None, written), "")


def arguments_in(value: object) -> str:
    """What the model wrote for a call: text, or a value written out; empty for nothing, {} and []."""
    if isinstance(value, str):
        return value
    if not value or not isinstance(value, (dict, list)):
        return ""
    if isinstance(value, list):
        texts = [text_in(entry) for entry in value]
        if all(texts):
            return "".join(texts)
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
