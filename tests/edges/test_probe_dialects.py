"""``phasegate probe`` on APIs of other dialects: what it sends, and what it draws of the answer."""

from __future__ import annotations

import json

import pytest

from phasegate.cli import main
from tests.engines.replay.streams import DOCUMENTED, Documented
from tests.loopback import Answer, Loopback


def script_of(stream: Documented) -> Answer:
    """The documented stream from a server on loopback."""
    pieces = [(0.02 * number, block) for number, block in enumerate(stream.blocks, 1)]
    return Answer(pieces=pieces, headers=(("content-type", stream.content_type),))


@pytest.mark.parametrize(
    ("name", "path", "limit"),
    [
        ("anthropic-thinking", "/v1/messages", {"max_tokens": 5}),
        ("ollama-native", "/api/chat", {"options": {"num_predict": 5, "temperature": 0}}),
    ],
)
def test_a_native_dialect_is_probed(
    name: str, path: str, limit: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt as it stands at the endpoint's own path, and the answer by channel."""
    stream = DOCUMENTED[name]
    with Loopback(script_of(stream)) as server:
        options = ["--base-url", server.base_url, "--model", "m", "--prompt", "hi", "--endpoint", stream.endpoint]
        status = main(["probe", *options, "--max-tokens", "5", "--json"])
        (served,) = server.log
    (record,) = json.loads(capsys.readouterr().out)["requests"]
    assert status == 0
    assert served.head.startswith(f"POST {path} ")
    assert served.body == {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}], **limit}
    assert (record["text"], record["reasoning_text"]) == (stream.expect["text"], stream.expect["reasoning"])
    assert (record["output_tokens"], record["prompt_tokens"]) == (stream.expect["tokens"], stream.expect["prompt"])
    assert record["time_to_first_token"] < record["time_to_first_output_token"]


def test_the_wrong_endpoint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Anthropic's events where chat chunks were expected: refused, with the remedy."""
    with Loopback(script_of(DOCUMENTED["anthropic-messages"])) as server:
        status = main(["probe", "--base-url", server.base_url, "--model", "m", "--prompt", "hi"])
    out = capsys.readouterr().out
    assert status == 5
    assert "wrong_dialect" in out
    assert "Anthropic's Messages" in out
    assert "--perf-endpoint" in out
