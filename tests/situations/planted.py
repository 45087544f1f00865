"""An OpenAI server on loopback with planted oddities: it answers as asked, and does wrong what a test says."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.loopback import SSE, Answer, Loopback, Served

JSON = (("content-type", "application/json"),)

TEMPLATE_TOKENS = 5
"""Tokens that the chat template adds; every word of a prompt is one token."""


@dataclass(frozen=True, slots=True)
class Oddities:
    """What the server does wrong, and how fast it is; by default nothing, and fast.

    Attributes:
        models: what the model list names.
        models_status: status of the model list.
        least_limit: limits of answer tokens below it are refused with 400.
        first: seconds to the first token of an empty prompt.
        per_prompt_token: further seconds per prompt token.
        gap: seconds between tokens.
        silent_cache: a prompt that was seen before costs no time per prompt token, and nothing says so.
        cut_at: longer prompts are cut to so many tokens without a word; usage tells the cut length.
        fail_every: every so-manieth answer is a failure; 0 for none.
        refused: names of fields in the body that are refused with 400.
        usage: merged into the usage that is reported.
        before: called with the number of each answer, the first one 1, before it is given.
    """

    models: Sequence[str] = ("m",)
    models_status: int = 200
    least_limit: int = 1
    first: float = 0.005
    per_prompt_token: float = 0.0
    gap: float = 0.001
    silent_cache: bool = False
    cut_at: int = 10**9
    fail_every: int = 0
    refused: Sequence[str] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[int], None] = lambda _: None


@contextmanager
def planted(oddities: Oddities | None = None, tls: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    """The running server. Its ``log`` has every request, questions included."""
    with Loopback(Planted(oddities or Oddities()), tls) as server:
        yield server


class Planted:
    """What such a server answers to each request; a script of `tests.loopback`."""

    def __init__(self, oddities: Oddities) -> None:
        self._odd = oddities
        self._seen: set[str] = set()
        self._answers = 0
        self._lock = threading.Lock()

    def __call__(self, served: Served) -> Answer:
        odd, path = self._odd, served.head.split(" ", 2)[1]
        if served.head.startswith("GET"):
            return self._question(path)
        if not path.endswith(("/chat/completions", "/completions")):
            return _refusal(404, "no such path")
        for name in odd.refused:
            if name in served.body:
                return _refusal(400, f"Unrecognized request argument supplied: {name}", name)
        limit = served.body.get("max_completion_tokens", served.body.get("max_tokens", 16))
        if limit < odd.least_limit:
            return _refusal(
                400,
                f"Invalid 'max_tokens': expected a value >= {odd.least_limit}, but got {limit} instead.",
                "max_tokens",
            )
        self._answers += 1
        odd.before(self._answers)
        if odd.fail_every and self._answers % odd.fail_every == 0:
            return _refusal(500, "planted")
        return self._stream(served.body, limit)

    def _question(self, path: str) -> Answer:
        odd = self._odd
        if not path.endswith("/models"):
            return _refusal(404, "no such path")
        if odd.models_status != 200:
            return _refusal(odd.models_status, "not for this key")
        return _plain({"object": "list", "data": [{"id": name, "object": "model"} for name in odd.models]})

    def _stream(self, body: Any, limit: int) -> Answer:
        odd, chat = self._odd, "messages" in body
        text = _text(body)
        prompt = min(len(text.split()) + TEMPLATE_TOKENS, odd.cut_at)
        wait = odd.first
        if not (odd.silent_cache and text in self._seen):
            wait += prompt * odd.per_prompt_token
        self._seen.add(text)
        pieces = [(wait + place * odd.gap, _event(_choice(chat, " w", None))) for place in range(limit)]
        end = _event(_choice(chat, "", "length"))
        if (body.get("stream_options") or {}).get("include_usage"):
            counts = {"prompt_tokens": prompt, "completion_tokens": limit, "total_tokens": prompt + limit, **odd.usage}
            end += _event({"choices": [], "usage": counts})
        pieces.append((wait + (limit - 1) * odd.gap, end + b"data: [DONE]\n\n"))
        return Answer(pieces=pieces, headers=SSE)


def _text(body: Any) -> str:
    if "messages" not in body:
        return str(body["prompt"])
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _choice(chat: bool, text: str, reason: str | None) -> Any:
    said = {"delta": {"content": text} if text else {}} if chat else {"text": text}
    return {"id": "c", "choices": [{"index": 0, **said, "finish_reason": reason}]}


def _event(content: Any) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def _plain(content: Any, status: int = 200) -> Answer:
    return Answer(pieces=[(0.0, json.dumps(content).encode())], status=status, headers=JSON, framing="length")


def _refusal(status: int, message: str, parameter: str | None = None) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": parameter}
    return _plain({"error": error}, status)
