"""What in a chunk is output: the text a choice's delta carries, by channel.

A piece of output is text that a reader would be shown, text of the model's reasoning, or a tool call's name
or arguments. A role, an empty or null text, a type without text, encrypted reasoning, filter results: none
of these is a token. Where servers say the same thing under two names, only the first of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from phasegate.timeline import Channel

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Names for reasoning text, by preference: a server that sends two of them sends one text twice."""


def pieces(choice: Mapping[str, Any]) -> list[tuple[Channel, str]]:
    """The output in one choice of one chunk: at most one text a channel, reasoning first, none empty.

    Understands the chat dialect (``delta``; a whole ``message`` where there is no delta) and the
    completions dialect (``text``).
    """
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        delta = choice.get("message")
    if not isinstance(delta, dict):
        text = choice.get("text")
        return [(Channel.CONTENT, text)] if isinstance(text, str) and text else []
    content = delta.get("content")
    if isinstance(content, str) and content and len(delta) == 1:
        return [(Channel.CONTENT, content)]
    found = (
        (Channel.REASONING, _reasoning(delta)),
        (Channel.CONTENT, _shown(content) + _text(delta.get("refusal"))),
        (Channel.TOOL, "".join(_calls(delta))),
    )
    return [(channel, text) for channel, text in found if text]


def strange_fields(choice: Mapping[str, Any]) -> Iterator[str]:
    """Names of fields in one choice of one chunk that hold something and are not understood, with their kind.

    ``delta.thinking``; ``delta.content (a number)`` where the field is known and its content is not.
    """
    found = choice.get("delta", choice.get("message"))
    if isinstance(found, dict):
        yield from (_named(f"delta.{name}", name, value) for name, value in found.items() if _is_strange(name, value))
    elif found:
        yield f"delta ({_kind(found)})"
    else:
        fields = ((name, value) for name, value in choice.items() if name not in _OF_A_CHOICE)
        yield from (_named(name, name, value) for name, value in fields if _is_strange(name, value))


_OF_A_CHOICE = frozenset({"delta", "message", "index", "finish_reason", "stop_reason", "logprobs", "usage"})
"""Fields of a choice that say something about the answer and are none of it."""

_WITHOUT_TEXT = frozenset({*REASONING_FIELDS, "role", "refusal", "tool_calls", "function_call", "name", "id", "index"})
"""Fields of a delta that are understood, with text in them or without."""


def _is_strange(name: str, value: object) -> bool:
    return name not in _WITHOUT_TEXT and not isinstance(value, bool) and (value == 0 or bool(value))


def _named(place: str, name: str, value: object) -> str:
    return f"{place} ({_kind(value)})" if name in ("content", "text") and not isinstance(value, str) else place


def _kind(value: object) -> str:
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}
    return kinds.get(type(value), "a number")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _reasoning(delta: Mapping[str, Any]) -> str:
    for field in REASONING_FIELDS:
        value = delta.get(field)
        text = value if isinstance(value, str) else "".join(_readable(value))
        if text:
            return text
    return "".join(_parts(delta.get("content"), "thinking"))


def _readable(details: object) -> Iterator[str]:
    """Text and summaries of typed reasoning; encrypted entries have neither."""
    for entry in details if isinstance(details, list) else ():
        if isinstance(entry, dict):
            yield _text(entry.get("text")) or _text(entry.get("summary"))


def _shown(content: object) -> str:
    """Content given as text, or as a list of typed parts."""
    return content if isinstance(content, str) else "".join(_parts(content, "text"))


def _parts(content: object, kind: str) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == kind:
            value = part.get(kind)
            yield value if isinstance(value, str) else "".join(_readable(value))


def _calls(delta: Mapping[str, Any]) -> Iterator[str]:
    """Names and arguments of tool calls, of today's shape and of the older single function call."""
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield from _call(call.get("function"))
            yield from _call(call.get("custom"))
    yield from _call(delta.get("function_call"))


def _call(call: object) -> Iterator[str]:
    if isinstance(call, dict):
        yield _text(call.get("name"))
        yield _text(call.get("arguments")) or _text(call.get("input"))
