"""What in a chunk is output: the text a choice's delta carries, by channel.

A piece of output is text that a reader would be shown, text of the model's reasoning, or a tool call's name
or arguments. A role, an empty or null text, a type without text, encrypted reasoning, filter results: none
of these is a token. Where servers say the same thing under two names, only the first of them counts. What stands in
fields that are not understood is handed on with their names (`unnamed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phasegate.core.timeline import Channel
from phasegate.wire.texts import call_in, content_in, text_in
from phasegate.wire.unnamed import Found, texts_in

REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "reasoning_details",
    "thinking",
    "thinking_content",
    "thinking_blocks",
    "thought",
    "thoughts",
)
"""Names for reasoning text, by preference: a server that sends two of them sends one text twice."""

_CALLS = ("tool_calls", "function_call")

_OF_A_DELTA = frozenset({*REASONING_FIELDS, *_CALLS, "content", "refusal", "audio"})
"""Fields of a delta that are read for their text."""

_OF_A_CHOICE = frozenset({*REASONING_FIELDS, "delta", "message", "text", "usage"})
"""Fields of a choice that are."""

_PLAIN_CHOICE = frozenset({"index", "delta", "logprobs", "finish_reason", "stop_reason"})
"""Fields of an ordinary choice."""


_PLAIN_FIELDS = {"content": Channel.CONTENT} | dict.fromkeys(REASONING_FIELDS, Channel.REASONING)
"""Fields that an ordinary delta holds alone, beside a role and empty ones."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one choice of one chunk holds.

    Attributes:
        pieces: at most one text a channel, reasoning first, none empty.
        calls: which call, and what came of its arguments.
        unnamed: texts in fields that are not understood.
    """

    pieces: list[tuple[Channel, str]]
    calls: list[tuple[str, str]]
    unnamed: list[Found]


def output_of(choice: Mapping[str, Any]) -> Output:
    """The output in one choice of one chunk.

    Understands the chat dialect (``delta``; a whole ``message`` where there is no delta) and the
    completions dialect (``text``).
    """
    delta = choice.get("delta")
    if isinstance(delta, dict) and choice.keys() <= _PLAIN_CHOICE:
        held = [(name, value) for name, value in delta.items() if value and name != "role"]
        if not held:
            return Output([], [], [])
        ((name, value), *more) = held
        channel = _PLAIN_FIELDS.get(name)
        if not more and channel is not None and isinstance(value, str):
            return Output([(channel, value)], [], [])
    place = "delta" if isinstance(delta, dict) or "message" not in choice else "message"
    given = choice[place] if isinstance(choice.get(place), dict) else {}
    calls, thought = list(_calls(given)), _reasoning(given)
    texts: dict[Channel, str] = {Channel.REASONING: thought, Channel.CONTENT: "", Channel.TOOL: ""}
    for channel, text in content_in(given.get("content")):
        if channel is not Channel.REASONING or not thought:
            texts[channel] += text
    spoken = (text_in(given.get("refusal")), text_in(_of(given.get("audio"), "transcript")))
    texts[Channel.CONTENT] += "".join(text for text in spoken if text != texts[Channel.CONTENT])
    texts[Channel.TOOL] += "".join(name + written for _, name, written in calls)
    # Beside a delta without them, or where there is none.
    texts[Channel.REASONING] = texts[Channel.REASONING] or _reasoning(choice)
    texts[Channel.CONTENT] = texts[Channel.CONTENT] or text_in(choice.get("text"))
    pieces = [(channel, text) for channel, text in texts.items() if text]
    arguments = [(key, written) for key, _, written in calls if written]
    return Output(pieces, arguments, list(_unnamed(choice, place, given)))


def _unnamed(choice: Mapping[str, Any], place: str, given: Mapping[str, Any]) -> Iterator[Found]:
    """Texts in fields of the choice and its delta that are not understood, or hold text where none was looked for."""
    yield from texts_in(given, _understood(given, _OF_A_DELTA), f"{place}.")
    whole = choice.get(place)
    if isinstance(whole, (str, list)) and whole:
        yield from texts_in({place: whole})
    yield from texts_in(choice, _understood(choice, _OF_A_CHOICE))
    message = choice.get("message")
    if place == "delta" and isinstance(message, dict):
        yield from texts_in(message, (), "message.")


def _understood(fields: Mapping[str, Any], known: frozenset[str]) -> set[str]:
    """The known fields, but for those whose value has a shape in which no text was found."""
    return {
        name for name in known & fields.keys() if not isinstance(fields[name], (dict, list)) or _is_read(name, fields)
    } | (known & {"delta", "message", "audio", "usage"})


def _is_read(name: str, fields: Mapping[str, Any]) -> bool:
    """Whether text was found in a field: a call counts where any call has a name or arguments."""
    if name in _CALLS:
        return any(called or written for _, called, written in _calls(fields))
    return bool(text_in(fields[name]))


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
        fields = ((name, value) for name, value in choice.items() if name not in _SAYING)
        yield from (_named(name, name, value) for name, value in fields if _is_strange(name, value))


_SAYING = frozenset({"delta", "message", "index", "finish_reason", "stop_reason", "logprobs", "usage"})
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


def _of(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _reasoning(fields: Mapping[str, Any]) -> str:
    return next((text for name in REASONING_FIELDS if (text := text_in(fields.get(name)))), "")


def _calls(delta: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Key, name and arguments of each tool call, of today's shape and of the older single function call."""
    for place, call in enumerate(_listed(delta.get("tool_calls"))):
        key = call.get("index", place) if isinstance(call, dict) else place
        yield (str(key), *call_in(call))
    older = delta.get("function_call")
    if older:
        yield ("function_call", *(("", older) if isinstance(older, str) else call_in(older)))


def _listed(calls: object) -> list[Any]:
    """Calls as a list: they may come as one object, or as an object of them."""
    if isinstance(calls, dict):
        return [calls] if {"function", "custom", "name", "arguments"} & calls.keys() else list(calls.values())
    return calls if isinstance(calls, list) else []
