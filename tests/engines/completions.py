"""Plain requests to a real engine, for tests."""

from __future__ import annotations

from typing import Any

from phasegate.engines.ask import ask
from phasegate.engines.base import Engine


def complete(engine: Engine, prompt: str, tokens: int = 8) -> dict[str, Any]:
    """The answer to one greedy completion of a forced length."""
    return _object(ask(f"{engine.base_url}/completions", body=_body(engine, tokens, prompt=prompt), seconds=60))


def chat(engine: Engine, content: str, tokens: int = 8) -> dict[str, Any]:
    """The answer to one greedy chat turn of a forced length."""
    message = {"role": "user", "content": content}
    return _object(
        ask(f"{engine.base_url}/chat/completions", body=_body(engine, tokens, messages=[message]), seconds=60)
    )


def cached_tokens(answer: dict[str, Any]) -> int:
    """How many prompt tokens the engine says came from its prefix cache."""
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])


def _body(engine: Engine, tokens: int, **prompt: object) -> dict[str, object]:
    return {"model": engine.model, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, **prompt}


def _object(answer: Any) -> dict[str, Any]:
    assert isinstance(answer, dict)
    return answer
