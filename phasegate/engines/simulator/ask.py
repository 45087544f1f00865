"""A generation request, read from its JSON body and checked as a server would. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phasegate.engines.simulator import words
from phasegate.engines.simulator.config import SimulatorConfig


class RefusalError(Exception):
    """A request that is answered with an error status and an OpenAI error object.

    Attributes:
        status: the HTTP status.
        kind: the ``type`` of the error object.
        retry_after: seconds for a Retry-After header, or None.
    """

    def __init__(
        self, status: int, message: str, kind: str = "invalid_request_error", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.retry_after = retry_after

    def body(self) -> bytes:
        """The error object."""
        error = {"message": str(self), "type": self.kind, "param": None, "code": self.status}
        return json.dumps({"error": error}).encode()


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for.

    Attributes:
        chat: whether it came through the chat endpoint.
        prompt: the prompt's tokens, template included.
        stream: whether the answer is to be streamed.
        include_usage: whether a stream shall end with the usage.
        running_usage: whether every chunk shall carry it.
        max_tokens: longest answer.
        min_tokens: shortest answer.
        ignore_eos: whether the answer must go on to ``max_tokens``.
    """

    chat: bool
    prompt: tuple[str, ...]
    stream: bool
    include_usage: bool
    running_usage: bool
    max_tokens: int
    min_tokens: int
    ignore_eos: bool


def read_ask(body: bytes, *, chat: bool, config: SimulatorConfig) -> Ask:
    """The request in a body.

    Raises:
        RefusalError: the body is not a request, names another model, or does not fit into the context.
    """
    plain = read_object(body)
    _check_model(plain, config)
    prompt = prompt_tokens(plain, chat=chat, config=config)
    options = plain.get("stream_options") or {}
    if not isinstance(options, Mapping):
        raise RefusalError(400, "stream_options must be an object")
    room = config.context_limit - len(prompt)
    ask = Ask(
        chat=chat,
        prompt=prompt,
        stream=bool(plain.get("stream")),
        include_usage=bool(options.get("include_usage")),
        running_usage=bool(options.get("continuous_usage_stats")),
        max_tokens=_max_tokens(plain, min(room, config.default_max_tokens)),
        min_tokens=_count(plain, "min_tokens", 0) or 0,
        ignore_eos=bool(plain.get("ignore_eos")),
    )
    if room < ask.max_tokens:
        raise RefusalError(
            400,
            f"This model's maximum context length is {config.context_limit} tokens. However, you requested "
            f"{len(prompt) + ask.max_tokens} tokens ({len(prompt)} in the prompt, {ask.max_tokens} for the answer).",
        )
    return ask


def read_object(body: bytes) -> Mapping[str, Any]:
    """The JSON object in a body.

    Raises:
        RefusalError: there is none.
    """
    try:
        plain = json.loads(body)
    except ValueError as error:
        raise RefusalError(400, f"the body is not JSON: {error}") from None
    if not isinstance(plain, dict):
        raise RefusalError(400, "the body must be a JSON object")
    return plain


def prompt_tokens(plain: Mapping[str, Any], *, chat: bool, config: SimulatorConfig) -> tuple[str, ...]:
    """The tokens of a request's prompt, the chat template's included.

    Raises:
        RefusalError: there is no prompt, or it is of no kind that is understood.
    """
    if chat:
        return (*words.template(config.template_tokens), *_message_tokens(plain.get("messages")))
    prompt = plain.get("prompt")
    if isinstance(prompt, list) and prompt and all(isinstance(item, int) for item in prompt):
        return tuple(f"<{item}>" for item in prompt)
    if not isinstance(prompt, str) or not words.tokenize(prompt):
        raise RefusalError(400, "prompt must be a text of at least one word, or a list of token ids")
    return tuple(words.tokenize(prompt))


def _message_tokens(messages: object) -> list[str]:
    if not isinstance(messages, list) or not messages:
        raise RefusalError(400, "messages must be a list of at least one message")
    tokens: list[str] = []
    for message in messages:
        if not isinstance(message, Mapping):
            raise RefusalError(400, "each message must be an object")
        tokens += words.tokenize(_text(message.get("content")))
    if not tokens:
        raise RefusalError(400, "the messages hold not a single word")
    return tokens


def _text(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return " ".join(str(part.get("text", "")) for part in content)
    raise RefusalError(400, "the content of a message must be a text or a list of parts")


def _check_model(plain: Mapping[str, Any], config: SimulatorConfig) -> None:
    model = plain.get("model")
    if model is None:
        raise RefusalError(400, "the request names no model")
    if model != config.model:
        raise RefusalError(404, f"The model `{model}` does not exist.", "not_found_error")
    if plain.get("n") not in (None, 1):
        raise RefusalError(400, "n must be 1: the simulator gives one answer")


def _max_tokens(plain: Mapping[str, Any], default: int) -> int:
    for name in ("max_completion_tokens", "max_tokens"):
        value = _count(plain, name, None)
        if value is not None:
            if value < 1:
                raise RefusalError(400, f"{name} must be at least 1, got {value}")
            return value
    return max(1, default)


def _count(plain: Mapping[str, Any], name: str, default: int | None) -> int | None:
    value = plain.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RefusalError(400, f"{name} must be a whole number of 0 or more, got {value!r}")
    return value
