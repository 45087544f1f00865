"""The bytes of an answer in OpenAI's format: events of a stream, or one JSON object. Pure.

What all events of one answer have in common is put together once, because a server of known timing must spend as
little as it can on each event.
"""

from __future__ import annotations

import json
from typing import Any

Usage = dict[str, Any]
"""The ``usage`` object of the API."""


def usage_object(prompt: int, completion: int, cached: int, reasoning: int = 0) -> Usage:
    """Token counts as the API tells them; reasoning is a part of the completion, and named where there is any."""
    counts: Usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {**counts, "completion_tokens_details": {"reasoning_tokens": reasoning}} if reasoning else counts


def event(payload: bytes) -> bytes:
    """One server-sent event."""
    return b"data: " + payload + b"\n\n"


DONE = event(b"[DONE]")
GARBAGE = b"\x00\xff\xfe no event \x01\n\ndata: \xf5\x80 {{{\n\n" * 3
MALFORMED = event(b'{"choices": [{"index": 0, "delta": {"conte')


def error_event(message: str) -> bytes:
    """An error as an event inside a stream."""
    error = {"message": message, "type": "server_error", "param": None, "code": 500}
    return event(json.dumps({"error": error}).encode())


class Frames:
    """The events of one answer.

    Args:
        chat: in the chat format, else in that of completions.
        answer_id: the ``id`` of every event.
        model: the model's name.
        created: seconds since the epoch.
    """

    def __init__(self, *, chat: bool, answer_id: str, model: str, created: int) -> None:
        self._chat = chat
        self._created = created
        self._model = model
        self._id = answer_id
        kind = "chat.completion.chunk" if chat else "text_completion"
        self._head = {"id": answer_id, "object": kind, "created": created, "model": model}
        start = json.dumps(self._head, separators=(",", ":"))[:-1].encode()
        self._start = b"data: " + start
        engine_options = b',"choices":[{"index":0,'
        self._before = self._start + engine_options + (b'"delta":{"content":"' if chat else b'"text":"')
        self._before_reasoning = self._start + engine_options + b'"delta":{"reasoning_content":"'
        self._after = (b'"}' if chat else b'"') + b',"logprobs":null,"finish_reason":null}]'

    def role(self) -> bytes:
        """The event that only says who speaks; nothing for completions, which have none."""
        if not self._chat:
            return b""
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        return self._event({"choices": [choice]})

    def text(self, escaped: bytes, usage: Usage | None = None, *, reasoning: bool = False) -> bytes:
        """An event with text, or with text of the reasoning, given as it stands inside a JSON string."""
        before = self._before_reasoning if reasoning else self._before
        tail = b"" if usage is None else b',"usage":' + json.dumps(usage).encode()
        return before + escaped + self._after + tail + b"}\n\n"

    def finish(self, reason: str, timings: dict[str, Any] | None = None) -> bytes:
        """The event that says why the answer ended, with the server's own timings where there are any."""
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": reason}
        choice["delta" if self._chat else "text"] = {} if self._chat else ""
        return self._event({"choices": [choice], **({} if timings is None else {"timings": timings})})

    def usage(self, usage: Usage) -> bytes:
        """The event with the token counts."""
        return self._event({"choices": [], "usage": usage})

    def whole(self, escaped: bytes, reason: str, usage: Usage | None) -> bytes:
        """The whole answer as one JSON object; its text is given as it stands inside a JSON string."""
        text = json.loads(b'"' + escaped + b'"')
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": reason}
        choice.update({"message": {"role": "assistant", "content": text}} if self._chat else {"text": text})
        kind = "chat.completion" if self._chat else "text_completion"
        answer = {**self._head, "object": kind, "choices": [choice]}
        if usage is not None:
            answer["usage"] = usage
        return json.dumps(answer).encode()

    def _event(self, rest: dict[str, Any]) -> bytes:
        return event(json.dumps({**self._head, **rest}).encode())
