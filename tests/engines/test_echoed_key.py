"""A server that repeats the key it was shown: nothing that is kept or printed of it holds the key."""

from __future__ import annotations

import pytest

from phasegate.core.identity import ServerIdentity
from phasegate.engines.attached import AttachedEngine
from phasegate.engines.base import EngineError
from tests.engines.front_doors import Door, house, models

KEY = "verysecret123"


def test_the_identity_of_a_server_holds_no_key() -> None:
    """The version is where vLLM and proxies of it have been seen to say anything at all."""
    doors = {"/v1/models": models(f"m-{KEY}", owner="vllm"), "/version": Door({"version": f"0.9 {KEY}"})}
    with house(doors) as server:
        engine = AttachedEngine(server.base_url, None, KEY)
        engine.start()
        found = engine.identity()
    assert engine.model == f"m-{KEY}"  # as it must be asked for
    assert (found.engine, found.version, found.model) == ("vllm", "0.9 [hidden]", "m-[hidden]")
    assert KEY not in found.describe()


def test_another_key_than_ones_own_is_hidden_where_it_looks_like_one() -> None:
    """Settings are searched to the bottom; a model's name is left, because by it models are told apart."""
    told = {"a": [{"b": "sk-othersecret"}], f"{KEY}": 3, "c": True}
    raw = ServerIdentity("e", "1 sk-othersecret", "hf-internal-testing/m", settings=told)
    found = raw.without_key(KEY)
    assert found.settings == {"a": [{"b": "[hidden]"}], "[hidden]": 3, "c": True}
    assert (found.version, found.model) == ("1 [hidden]", "hf-internal-testing/m")
    assert raw.without_key(None).model == raw.without_key("m").model == raw.model


def test_names_of_models_in_a_message_hold_neither_key_nor_control_characters() -> None:
    """A terminal obeys an escape; a reader does not."""
    with (
        house({"/v1/models": models(f"a-{KEY}", "b\x1b[31m\n")}) as server,
        pytest.raises(EngineError, match=r"it has a-\[hidden\], b\ufffd\[31m; name one"),
    ):
        AttachedEngine(server.base_url, None, KEY).start()
    assert "\x1b" not in ServerIdentity("e", "1", "b\x1b[31m").describe()
