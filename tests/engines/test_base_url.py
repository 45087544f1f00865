"""Addresses that are no base of other addresses are refused in one line, without anything secret in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.engines.address import address_of
from phasegate.engines.base import EngineError

HOST = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        (f"{HOST}/v1?key=verysecret", f"base URL '{HOST}/v1' goes on behind a ? or #, where no path can follow; leave"),
        (f"{HOST}/v1#verysecret", f"base URL '{HOST}/v1' goes on behind a ? or #"),
        ("http://u:verysecret@127.0.0.1:9/v1?a=b", f"base URL '{HOST}/v1' goes on"),
        (f"{HOST}/hon est/v1", f"base URL '{HOST}/hon est/v1' has a space in it; write %20 for it, or take it out"),
        (f"{HOST}/v1/chat/completions", f"ends in /chat/completions, which requests append themselves; the base URL "
         f"ends before that: {HOST}/v1"),
        (f"{HOST}/v1/chat/completions/", f"the base URL ends before that: {HOST}/v1"),
        (f"{HOST}/v1/completions", f"ends in /completions, which requests append themselves; the base URL ends before "
         f"that: {HOST}/v1"),
        ("https://api.anthropic.com/v1/messages", "before that: https://api.anthropic.com/v1"),
        (f"{HOST}/v1/models", f"before that: {HOST}/v1"),
    ],
)  # fmt: skip
def test_what_is_no_base_is_refused(base_url: str, message: str) -> None:
    """And the line says where the base ends."""
    with pytest.raises(EngineError) as caught:
        address_of(base_url, "auto", Path("nowhere"), {})
    assert message in str(caught.value)
    assert "verysecret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "base_url",
    [
        f"{HOST}/v1",
        f"{HOST}/v1/",
        f"{HOST}/my-completions",
        f"{HOST}/chat%20box/v1",
        "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
    ],
)
def test_a_base_passes(base_url: str) -> None:
    """The address that Azure's portal shows for a deployment among them."""
    address_of(base_url, "auto", Path("nowhere"), {})
