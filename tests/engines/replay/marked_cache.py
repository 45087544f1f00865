"""A server of Anthropic's Messages endpoint, replayed: it caches a prompt's beginning only where a request marks it.

Written from https://platform.claude.com/docs/en/build-with-claude/prompt-caching: what stands up to and including a
block with ``cache_control`` is written into the cache, and read from it the next time; ``input_tokens`` counts neither.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import Answer, Served

TEMPLATE = 7
"""Tokens that every prompt has beside its words, each of which is one."""

PREFILL = 60e-6
"""Seconds to read one token."""

GAP = 0.004
"""Seconds between tokens of the answer: enough for each to be a read of its own, mostly."""


@dataclass
class MarkedCache:
    """The script of such a server.

    Attributes:
        least: shorter beginnings, in tokens, are not cached.
        cached: the beginnings in the cache.
    """

    least: int = 1
    cached: set[str] = field(default_factory=set)

    def __call__(self, served: Served) -> Answer:
        """What it answers."""
        parts = parts_of(served.body)
        marked = marked_text(parts)
        total = _tokens("".join(part["text"] for part in parts))
        covered = _tokens(marked) if marked and _tokens(marked) >= self.least else 0
        read = covered if marked in self.cached else 0
        if covered:
            self.cached.add(marked)
        usage = {
            "input_tokens": total - covered,
            "cache_creation_input_tokens": covered - read,
            "cache_read_input_tokens": read,
            "output_tokens": 1,
        }
        return _answer(usage, PREFILL * (total - read), served.body["max_tokens"])


def parts_of(body: Any) -> list[dict[str, Any]]:
    """The text parts of a request's only message; one where it is plain text."""
    content = body["messages"][0]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def marked_text(parts: list[dict[str, Any]]) -> str:
    """Everything up to the last part with a mark; empty without one."""
    places = [place for place, part in enumerate(parts) if part.get("cache_control") == {"type": "ephemeral"}]
    return "".join(part["text"] for part in parts[: places[-1] + 1]) if places else ""


def _tokens(text: str) -> int:
    return TEMPLATE + len(text.split())


def _answer(usage: dict[str, int], first: float, count: int) -> Answer:
    message = {"type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    start = _event("message_start", message=message)
    start += _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    pieces = [(first, start + _text("t0 "))]
    pieces += [(first + place * GAP, _text(f"t{place} ")) for place in range(1, count)]
    end = _event("content_block_stop", index=0)
    end += _event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"output_tokens": count})
    return Answer(pieces=[*pieces, (first + count * GAP, end + _event("message_stop"))], keep_alive=True)


def _text(text: str) -> bytes:
    return _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
