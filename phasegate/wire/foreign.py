"""Whose dialect a payload speaks, when it is not the one that was asked for.

A server behind the wrong address, or a proxy that forgot to translate, answers in good order and in the words of
another API. Read with the wrong eyes such an answer is empty or cut off; it deserves its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CHAT = "OpenAI's chat completions"
COMPLETIONS = "OpenAI's completions"
MESSAGES = "Anthropic's Messages"
OLLAMA = "Ollama's own API"

MESSAGES_EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)
"""Event types of Anthropic's Messages stream, ``ping`` and ``error`` aside, which others send too."""

_MARKS: tuple[tuple[str, frozenset[str]], ...] = (
    ("Gemini's generateContent", frozenset({"candidates"})),
    ("TGI's own generate_stream", frozenset({"token", "generated_text"})),
    ("SGLang's own generate", frozenset({"text", "meta_info"})),
    (OLLAMA, frozenset({"message", "done"})),
    (OLLAMA, frozenset({"response", "done"})),
    ("llama.cpp's own completion", frozenset({"content", "stop"})),
    ("Triton's generate_stream", frozenset({"text_output"})),
    ("Cohere's chat", frozenset({"event_type", "is_finished"})),
)
"""A dialect, and the keys that together give it away."""


def dialect_of(payload: Mapping[str, Any]) -> str | None:
    """The name of the dialect that a payload belongs to; None where it could be anybody's."""
    kind = payload.get("type")
    if isinstance(kind, str):
        if kind in MESSAGES_EVENTS:
            return MESSAGES
        if kind.startswith("response."):
            return "OpenAI's Responses"
    if isinstance(payload.get("choices"), list):
        return COMPLETIONS if payload.get("object") == "text_completion" else CHAT
    return next((name for name, keys in _MARKS if keys <= payload.keys()), None)
