"""The same bytes from a server on loopback, asked through the profile: what is sent, and what is read of the answer.

The server logs when each block left. A first token can never come before its block did.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasegate.core.request import Request
from phasegate.core.target import Target
from phasegate.core.timeline import Expected, Recording
from phasegate.engines.address import target_at
from phasegate.engines.profile import EngineProfile, profile_named
from phasegate.load.client import Client
from phasegate.wire.decoding import decode
from tests.engines.replay.streams import DOCUMENTED, Documented
from tests.loopback import Answer, Loopback, Served

KEY = "sk-very-secret-key"

GAP = 0.002
"""Seconds between blocks: enough for each to be a read of its own, mostly; nothing here depends on it."""


def script_of(stream: Documented) -> Answer:
    """The stream's blocks, one after another."""
    pieces = [(number * GAP, block) for number, block in enumerate(stream.blocks, 1)]
    return Answer(pieces=pieces, headers=(("content-type", stream.content_type),))


def body_of(profile: EngineProfile, endpoint: str) -> dict[str, Any]:
    """A request for 16 tokens as the lab would write it."""
    said = {"prompt": "hi"} if endpoint == "completions" else {"messages": [{"role": "user", "content": "hi"}]}
    heat = {} if endpoint == "ollama" else {"temperature": 0}
    return profile.allowed({**profile.request_extras(endpoint, 16), **heat, **said})


def exchange(target: Target, profile: EngineProfile, endpoint: str) -> Recording:
    """One request through the measuring client."""
    request = Request("r", endpoint, body_of(profile, endpoint), Expected(endpoint=endpoint))

    async def send() -> Recording:
        async with Client(target) as client:
            return await client.send(request)

    return asyncio.run(send())


def asked(name: str, key: str | None = KEY) -> tuple[Served, Recording]:
    """What the server saw, and what came back."""
    stream = DOCUMENTED[name]
    profile = profile_named(stream.profile)
    with Loopback(script_of(stream)) as server:
        target = target_at(server.base_url, profile, "m", key, timeout=10, idle_timeout=10)
        recording = exchange(target, profile, stream.endpoint)
        return server.log[0], recording


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_a_replayed_server_is_read_as_its_recording(name: str) -> None:
    """Everything but the moments is the same; the first token comes after its block left and not before."""
    stream = DOCUMENTED[name]
    served, recording = asked(name)
    line, known = decode(recording), decode(stream.recording())
    assert (line.status, line.error_kind, line.error_message) == (known.status, known.error_kind, known.error_message)
    assert [(token.channel, token.text) for token in line.tokens] == [
        (token.channel, token.text) for token in known.tokens
    ]
    counts = ("output_tokens", "token_source", "prompt_tokens", "cached_tokens", "reasoning_tokens", "finish_reason")
    assert [getattr(line, count) for count in counts] == [getattr(known, count) for count in counts]
    shared_reads = {"burst", "buffered"}  # A busy machine may read two blocks at once.
    assert set(line.flags) - shared_reads == set(known.flags)
    if "first" in stream.expect:
        assert line.tokens[0].at >= served.left[stream.expect["first"] - 1][0]


@pytest.mark.parametrize(
    ("name", "sent", "not_sent"),
    [
        ("tgi-chat", {"max_tokens": 16, "temperature": 0}, {"ignore_eos", "min_tokens"}),
        ("tensorrt-llm-chat", {"max_tokens": 16, "ignore_eos": True, "min_tokens": 16}, set()),
        ("lmdeploy-chat", {"max_tokens": 16, "ignore_eos": True, "min_new_tokens": 16}, {"min_tokens"}),
        ("openai-chat", {"max_completion_tokens": 16}, {"max_tokens", "temperature", "ignore_eos"}),
        ("azure-chat", {"max_completion_tokens": 16}, {"max_tokens", "temperature"}),
        ("mistral-chat", {"max_tokens": 16}, {"stream_options"}),
        ("anthropic-messages", {"max_tokens": 16}, {"stream_options", "temperature"}),
        ("ollama-chat", {"max_tokens": 16, "stream_options": {"include_usage": True}}, {"options"}),
        ("ollama-native", {"options": {"num_predict": 16, "temperature": 0}}, {"max_tokens", "stream_options"}),
        ("anthropic-openai", {"max_tokens": 16, "stream_options": {"include_usage": True}}, {"temperature"}),
    ],
)
def test_a_request_is_written_in_the_manner_of_its_engine(
    name: str, sent: dict[str, object], not_sent: set[str]
) -> None:
    """The limit under its name, what forces the length, and nothing that would be refused."""
    served, _ = asked(name)
    assert {key: served.body.get(key) for key in sent} == sent
    assert not_sent.isdisjoint(served.body)
    assert (served.body["model"], served.body["stream"]) == ("m", True)


@pytest.mark.parametrize(
    ("name", "path", "present", "absent"),
    [
        ("tgi-chat", "/v1/chat/completions", [f"authorization: bearer {KEY}"], ["x-api-key"]),
        (
            "anthropic-messages",
            "/v1/messages",
            [f"x-api-key: {KEY}", "anthropic-version: 2023-06-01"],
            ["authorization", "api-key: bearer"],
        ),
        ("anthropic-openai", "/v1/chat/completions", [f"authorization: bearer {KEY}"], ["x-api-key"]),
        ("azure-chat", "/v1/chat/completions", [f"api-key: {KEY}"], ["authorization"]),
        ("ollama-native", "/api/chat", [f"authorization: bearer {KEY}"], ["x-api-key"]),
    ],
)
def test_the_key_travels_in_the_header_of_the_api(name: str, path: str, present: list[str], absent: list[str]) -> None:
    """And in no other; it is in no repr either."""
    served, recording = asked(name)
    head = served.head.lower()
    assert head.startswith(f"post {path} ")
    assert all(f"\r\n{line}\r\n" in head for line in present)
    assert not any(f"\r\n{word}" in head for word in absent)
    assert KEY not in repr(recording)


@pytest.mark.parametrize("name", ["tgi-chat", "anthropic-messages", "azure-chat"])
def test_without_a_key_nothing_is_shown(name: str) -> None:
    """A server on one's own machine needs none."""
    served, _ = asked(name, key=None)
    assert not any(word in served.head.lower() for word in ("authorization", "api-key"))


def test_an_azure_deployment_is_asked_at_its_own_path() -> None:
    """With its API version and its key header."""
    from phasegate.engines.address import address_of

    stream = DOCUMENTED["azure-chat"]
    with Loopback(script_of(stream)) as server:
        root = server.base_url.removesuffix("/v1")
        url = f"{root}/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
        at = address_of(url, "azure", Path("nowhere"), {"AZURE_OPENAI_API_KEY": KEY})
        assert (at.base_url, at.key_name) == (root, "AZURE_OPENAI_API_KEY")
        assert at.told is not None
        target = target_at(at.base_url, at.told, "my-gpt", KEY, timeout=10, idle_timeout=10, azure=at.azure)
        line = decode(exchange(target, at.told, "chat"))
        served = server.log[0]
    assert line.text == stream.expect["text"]
    assert served.head.startswith("POST /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21 ")
    assert f"\r\napi-key: {KEY}\r\n" in served.head
    assert "authorization" not in served.head.lower()


def test_a_cut_answer_of_messages_is_a_lost_connection() -> None:
    """Over the socket, too: the tokens that came are kept, and no time per token is made of them."""
    stream = DOCUMENTED["anthropic-messages"]
    profile = profile_named("anthropic")
    script = replace(script_of(stream), pieces=script_of(stream).pieces[:6], ending="cut")
    with Loopback(script) as server:
        target = target_at(server.base_url, profile, "m", None, timeout=10, idle_timeout=10)
        line = decode(exchange(target, profile, "messages"))
    assert (line.status, line.error_kind, line.output_tokens) == ("error", "connection_lost", None)
    assert line.text == "Read first,"


def test_the_comparison_sees_a_body_that_says_too_much() -> None:
    """Shown failing: the unknown server's profile would send what Mistral refuses."""
    profile = profile_named("unknown")
    with Loopback(script_of(DOCUMENTED["mistral-chat"])) as server:
        target = target_at(server.base_url, profile, "m", None, timeout=10, idle_timeout=10)
        exchange(target, profile, "chat")
        body = json.dumps(server.log[0].body)
    assert "stream_options" in body
