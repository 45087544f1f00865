"""Attaching a server: it is found, or one line says why not and what to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from phasegate.engines.attached import AttachedEngine
from phasegate.engines.base import Engine, EngineError
from tests.engines.front_doors import Door, house, models

KEY = "sk-very-secret"


def refusal(base_url: str, model: str | None = None, api_key: str | None = None) -> str:
    """The line that a user reads when the server cannot be used."""
    with pytest.raises(EngineError) as caught:
        AttachedEngine(base_url, model, api_key).start()
    line = str(caught.value)
    assert "\n" not in line
    return line


@contextmanager
def speaking(answer: bytes) -> Iterator[str]:
    """A server that says these bytes to everybody and closes; its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def test_the_only_model_is_taken() -> None:
    """Nobody has to name what there is one of."""
    with house({"/v1/models": models("m")}) as server:
        engine = AttachedEngine(f"{server.base_url}/", None, KEY)
        engine.start()
        assert isinstance(engine, Engine)
        assert (engine.model, engine.base_url, engine.can_restart) == ("m", server.base_url, False)
    assert server.knocks[0].headers["authorization"] == f"Bearer {KEY}"


def test_of_several_models_one_must_be_named() -> None:
    """The line lists them."""
    with house({"/v1/models": models("a", "b")}) as server:
        assert "which model? it has a, b; name one (--perf-model" in refusal(server.base_url)
        engine = AttachedEngine(server.base_url, "b")
        engine.start()
    assert engine.model == "b"


def test_a_model_that_is_not_listed_is_asked_for_with_a_warning() -> None:
    """At most eight names (C002)."""
    with house({"/v1/models": models(*"abcdefghij")}) as server:
        engine = AttachedEngine(server.base_url, "z")
        engine.start()
    (warning,) = engine.warnings
    assert warning.startswith("model 'z' is not in the list of http://127.0.0.1")
    assert "which has a, b, c, d, e, f, g, h and 2 more; it is asked for" in warning
    assert engine.model == "z"


@pytest.mark.parametrize(
    "door",
    [
        *(Door({"error": "no"}, status) for status in (401, 403, 404, 405, 429, 500, 501, 502, 503)),
        Door(None, 302, {"location": "http://127.0.0.1:9/"}),
        Door("<html>"),
        Door({"data": []}),
        Door({"object": "list"}),
    ],
    ids=lambda door: f"{door.status} {door.content}",
)
def test_no_list_decides_anything_where_a_model_was_named(door: Door) -> None:
    """Forbidden, missing, broken, empty (C003): the first request tells what there is to tell."""
    with house({"/v1/models": door}) as server:
        engine = AttachedEngine(server.base_url, "m", KEY)
        engine.start()
        assert engine.warnings == ()


def test_a_server_without_a_model_list_is_used_when_a_model_is_named() -> None:
    """Not every server lists its models."""
    with house({}) as server:
        AttachedEngine(server.base_url, "m").start()
        assert "which model? it lists none" in refusal(server.base_url)


def test_nobody_there() -> None:
    """Connection refused, with the address and the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    line = refusal(f"http://127.0.0.1:{port}/v1", "m")
    assert line == (
        f"http://127.0.0.1:{port}/v1: no server answers there (connection refused); start it, or check the address"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_said_and_not_shown(status: int) -> None:
    """The line names the variable, never its content."""
    with house({"/v1/models": Door({"error": "bad key"}, status)}) as server:
        line = refusal(server.base_url, None, KEY)
    assert f"the key was refused (HTTP {status}); check OPENAI_API_KEY; or name the model" in line
    assert KEY not in line


def test_a_key_with_a_line_break_is_said_and_not_shown() -> None:
    """Nothing is sent."""
    with house({"/v1/models": models("m")}) as server:
        line = refusal(server.base_url, None, f"{KEY}\n")
    assert line.startswith("OPENAI_API_KEY: the key holds a line break")
    assert KEY not in line
    assert not server.knocks


@pytest.mark.parametrize("doors", [{"/v1/models": models("m")}, {"/v1/models": models("m"), "/models": Door("<html>")}])
def test_a_forgotten_version_path_is_pointed_out(doors: Mapping[str, Door]) -> None:
    """Also where the root answers something else."""
    with house(doors) as server:
        assert refusal(server.root) == f"{server.root}: no API there; it is at {server.root}/v1"


def test_a_server_that_is_loading_is_not_taken_for_one_without_models() -> None:
    """llama.cpp answers 503 while it reads its weights."""
    with house({"/v1/models": Door({"error": "Loading model"}, 503)}) as server:
        assert "the server is not ready (HTTP 503)" in refusal(server.base_url)


def test_a_redirect_is_refused() -> None:
    """Its target would be measured through a detour, and be given the key."""
    with house({"/v1/models": Door(None, 301, {"location": "http://127.0.0.1:9/"})}) as server:
        assert "it redirects (HTTP 301)" in refusal(server.base_url)


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\n\r\n<html>hello</html>"], ids=["no HTTP", "a web page"]
)
def test_something_else_answers(answer: bytes) -> None:
    """Another service on the port is told apart from nobody there."""
    with speaking(answer) as base_url:
        assert "something answers there, but not an OpenAI-style API" in refusal(base_url)


@pytest.mark.parametrize("base_url", ["127.0.0.1:8000/v1", "gpu-box/v1", "localhost:8000"])
def test_what_is_no_address(base_url: str) -> None:
    """The line shows what one looks like."""
    assert refusal(base_url) == f"base URL {base_url!r}: the address must look like http://host:port/v1"


def test_secrets_stay_out_of_texts() -> None:
    """Neither the key nor a login in the address is in what is printed of an engine."""
    engine = AttachedEngine("http://me:hidden@127.0.0.1:9/v1", "m", KEY)
    with pytest.raises(EngineError) as caught:
        engine.start()
    for text in (repr(engine), str(caught.value)):
        assert "hidden" not in text
        assert KEY not in text


@pytest.mark.parametrize(
    ("doors", "asked"),
    [
        ({"/v1/models": models("m", owner="vllm"), "/reset_prefix_cache": Door()}, ["/reset_prefix_cache"]),
        ({"/v1/models": models("m", owner="sglang"), "/flush_cache": Door("Cache flushed.")}, ["/flush_cache"]),
        (
            {
                "/v1/models": models("m"),
                "/props": Door({"build_info": "b1", "total_slots": 2}),
                "/slots/0?action=erase": Door({"n_erased": 3}),
                "/slots/1?action=erase": Door({"n_erased": 0}),
            },
            ["/slots/0?action=erase", "/slots/1?action=erase"],
        ),
    ],
    ids=["vllm", "sglang", "llama.cpp"],
)
def test_the_prefix_cache_is_emptied_through_the_engines_door(doors: Mapping[str, Door], asked: list[str]) -> None:
    """Each engine has its own, outside the versioned path."""
    with house(doors) as server:
        engine = AttachedEngine(server.base_url)
        engine.start()
        assert engine.reset_prefix_cache()
    assert [knock.path for knock in server.knocks if knock.method == "POST"] == asked


def test_a_closed_or_missing_door_means_no_reset() -> None:
    """vLLM opens it only in its development mode; an unknown server has none."""
    for owner in ("vllm", "somebody"):
        with house({"/v1/models": models("m", owner=owner)}) as server:
            engine = AttachedEngine(server.base_url)
            engine.start()
            assert not engine.reset_prefix_cache()


@pytest.mark.parametrize(
    ("answer", "count"), [({"tokens": [1, 2, 3]}, 3), ({"count": 4, "tokens": []}, 4), ({"x": 1}, None)]
)
def test_tokens_are_counted_by_the_server(answer: object, count: int | None) -> None:
    """In llama.cpp's words or vLLM's; None where the server does not tell."""
    with house({"/v1/models": models("m"), "/tokenize": Door(answer)}) as server:
        engine = AttachedEngine(server.base_url, "m")
        assert engine.tokenize("a b c") == count


def test_the_users_word_on_hardware_is_kept_with_its_source() -> None:
    """A server does not tell what it runs on."""
    with house({"/v1/models": models("m")}) as server:
        identity = AttachedEngine(server.base_url, "m", hardware="1xH100").identity()
    assert identity.hardware == "1xH100"
    assert identity.sources["hardware"] == "--perf-hardware"
