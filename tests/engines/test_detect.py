"""What a server tells about itself, with the door each fact came through."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from phasegate.core.identity import client_identity, this_host
from phasegate.engines.detect import detect
from phasegate.engines.profile import profile_for
from tests.engines.front_doors import Door, house, models

PROPS = {"build_info": "b11434-abc", "total_slots": 4, "default_generation_settings": {"n_ctx": 4096}}


@pytest.mark.parametrize(
    ("doors", "engine", "version", "settings"),
    [
        ({"/props": Door(PROPS)}, "llama.cpp", "b11434-abc", {"total_slots": 4, "n_ctx": 4096}),
        ({"/v1/models": models("m", owner="vllm"), "/version": Door({"version": "0.32.0"})}, "vllm", "0.32.0", {}),
        ({"/v1/models": models("m", owner="vllm")}, "vllm", "unknown", {}),
        (
            {"/get_server_info": Door({"version": "0.5.23", "dtype": "bfloat16", "random_seed": 3})},
            "sglang",
            "0.5.23",
            {"dtype": "bfloat16"},
        ),
        ({"/v1/models": models("m", owner="sglang")}, "sglang", "unknown", {}),
        ({"/v1/models": models("m", owner="me"), "/version": Door({"version": "9"})}, "unknown", "unknown", {}),
        ({}, "unknown", "unknown", {}),
        ({"/props": Door([1]), "/version": Door("x"), "/v1/models": Door({"data": 3})}, "unknown", "unknown", {}),
    ],
    ids=["llama.cpp", "vllm", "vllm closed", "sglang", "sglang closed", "a stranger", "silent", "nonsense"],
)
def test_an_engine_is_known_by_its_doors(
    doors: Mapping[str, Door], engine: str, version: str, settings: Mapping[str, object]
) -> None:
    """Every fact names its source, and what is not told stays unknown."""
    with house(doors) as server:
        found = detect(server.base_url, "m")
    assert (found.engine, found.version, found.settings) == (engine, version, settings)
    assert found.hardware == "unknown"
    assert ("engine" in found.sources) == (engine != "unknown")
    assert ("version" in found.sources) == (version != "unknown")


def test_llama_cpp_is_known_by_its_server_header_where_its_doors_are_closed() -> None:
    """Whatever the status of the answer."""
    with house({"/v1/models": Door({"error": "key"}, 401)}, server="llama.cpp") as server:
        found = detect(server.base_url, "m")
    assert (found.engine, found.sources) == ("llama.cpp", {"engine": "the Server header"})


def test_a_hosted_api_is_known_by_its_address_alone() -> None:
    """Nothing is asked of it: this test would fail without a network otherwise."""
    assert profile_for(detect("https://api.openai.com/v1", "m")).name == "openai"


def test_the_client_tells_its_own_machine() -> None:
    """Kept apart from the server's; the host is a digest, not a name."""
    client = client_identity()
    assert client.cores >= 1
    assert client.openai[0].isdigit()
    assert client.phasegate in client.describe()
    assert len(this_host()) == 12
    assert this_host() == this_host()
