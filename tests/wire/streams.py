"""Small streams for tests: payloads in, recordings out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from phasegate.core.timeline import Ending, Expected, Read, Recording, Timeline
from phasegate.wire.openai_stream import decode

DONE = "data: [DONE]\n\n"


def event(payload: object) -> str:
    """One event with that payload as JSON."""
    return f"data: {json.dumps(payload)}\n\n"


def chat(delta: object, finish: str | None = None, index: int = 0, **more: Any) -> str:
    """One chunk of the chat dialect; ``more`` goes to the top level."""
    return event({"choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more})


def said(text: str, **more: Any) -> str:
    """One chunk of content."""
    return chat({"content": text}, **more)


def usage(completion: object, prompt: object = 10, **more: Any) -> str:
    """The extra chunk with the counts."""
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion, **more}})


STOP = chat({}, finish="stop")


def recorded(
    bodies: Sequence[str | bytes],
    status: int | None = 200,
    content_type: str | None = "text/event-stream",
    ending: Ending = Ending.EOF,
    detail: str = "",
    expected: Expected | None = None,
) -> Recording:
    """Reads at 1 s, 2 s, ... after the send, and an ending one second after the last."""
    raw = [body.encode() if isinstance(body, str) else body for body in bodies]
    return Recording(
        request_id="r",
        due=0.0,
        sent=0.0,
        connect_time=None,
        http_status=status,
        headers=(("content-type", content_type),) if content_type else (),
        headers_at=0.5 if status else None,
        reads=tuple(Read(float(number), data) for number, data in enumerate(raw, start=1)),
        ending=ending,
        ended_at=len(raw) + 1.0,
        detail=detail,
        expected=expected or Expected(),
    )


def line_of(*bodies: str | bytes, **more: Any) -> Timeline:
    """The timeline of such a recording."""
    return decode(recorded(bodies, **more))
