"""A server that repeats the key it was shown, in words that do not look like a key."""

from __future__ import annotations

import json

from phasegate.core.hiding import hide_key
from phasegate.wire.decoding import decode
from tests.wire.streams import DONE, STOP, chat, recorded, usage

KEY = "verysecret123"


def test_a_timeline_does_not_repeat_the_key() -> None:
    """Neither in a message of the server nor as its model's name."""
    refusal = recorded([json.dumps({"error": {"message": f"who is {KEY}?"}})], status=401)
    assert decode(refusal, KEY).error_message == "who is [hidden]?"
    assert decode(refusal).error_message == f"who is {KEY}?"  # nobody knows that it is one
    named = recorded([chat({"content": "a"}, model=f"m-{KEY}"), STOP, usage(1), DONE])
    assert (decode(named, KEY).model, decode(named, KEY).status) == ("m-[hidden]", "ok")


def test_a_key_that_is_hardly_one_strikes_out_nothing() -> None:
    """Servers without a key are asked with ``x`` or ``-``, and words hold those."""
    assert [hide_key("an example", key) for key in (None, "", "x", "exa")] == ["an example"] * 4
