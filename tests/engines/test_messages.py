"""Anthropic's Messages endpoint for real: the embedded engine speaks it, too, and is read the same through both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasegate.core.metric import Undefined, time_per_output_token, time_to_first_token
from phasegate.core.request import Request
from phasegate.core.timeline import Expected, Timeline
from phasegate.engines.address import target_at
from phasegate.engines.embedded import EmbeddedEngine
from phasegate.engines.profile import profile_named
from phasegate.load.closed import run_closed
from phasegate.wire.decoding import decode

pytestmark = pytest.mark.engine

TOKENS = 12


def answers(engine: EmbeddedEngine, endpoint: str, prompts: list[str]) -> list[Timeline]:
    """The answers to these prompts, one after another."""
    profile = profile_named("llama.cpp")
    target = target_at(engine.base_url, profile, engine.model, engine.api_key, timeout=60, idle_timeout=60)
    expected = Expected(endpoint=endpoint, max_tokens=TOKENS, cold_prompt=False)
    requests = [
        Request(
            f"r{number}",
            endpoint,
            {
                **profile.request_extras(endpoint, TOKENS),
                "temperature": 0,
                "messages": [{"role": "user", "content": prompt}],
            },
            expected,
        )
        for number, prompt in enumerate(prompts)
    ]
    return [decode(one) for one in run_closed(target, requests, max_concurrency=1).recordings]


def test_both_endpoints_tell_the_same_of_the_same_prompt(engine: EmbeddedEngine) -> None:
    """Text, counts and the end; the prompt's tokens are all of them, from the cache or not."""
    prompt = "".join(f" {word}" for word in engine.words[500:600])
    (chat,) = answers(engine, "chat", [prompt])
    messages = answers(engine, "messages", [prompt, prompt])
    for line in messages:
        assert (line.status, line.text) == ("ok", chat.text)
        assert (line.output_tokens, line.token_source, line.prompt_tokens) == (TOKENS, "usage", chat.prompt_tokens)
        assert len(line.tokens) == TOKENS
        assert set(line.flags) <= {"cached_prompt", "burst"}
        assert not isinstance(time_to_first_token(line), Undefined)
        assert not isinstance(time_per_output_token(line), Undefined)
    assert (chat.finish_reason, messages[0].finish_reason) == ("length", "max_tokens")
    assert (messages[1].cached_tokens or 0) >= 100


def test_asking_one_and_expecting_the_other_is_refused(engine: EmbeddedEngine) -> None:
    """Not read as silence."""
    profile = profile_named("llama.cpp")
    target = target_at(engine.base_url, profile, engine.model, engine.api_key, timeout=60, idle_timeout=60)
    body = {"max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
    request = Request("r", "messages", body, Expected(endpoint="messages"))
    (recording,) = run_closed(target, [request], max_concurrency=1).recordings
    line = decode(replace(recording, expected=Expected(endpoint="chat")))
    assert (line.error_kind, line.tokens) == ("wrong_dialect", ())
