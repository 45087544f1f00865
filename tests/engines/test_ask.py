"""Asking a server: every answer or one line, and a key goes nowhere but to that server."""

from __future__ import annotations

import base64

import pytest

from phasegate.engines.ask import AskError, address_problem, ask, tell, without_userinfo
from tests.engines.front_doors import Door, house

KEY = "sk-very-secret"


def test_the_answer_is_the_json_that_came() -> None:
    """A GET without a body, a POST with one; the key travels as a bearer token."""
    with house({"/a": Door({"x": 1})}) as server:
        assert ask(f"{server.root}/a", api_key=KEY) == {"x": 1}
        assert ask(f"{server.root}/a", body={}) == {"x": 1}
    assert [knock.method for knock in server.knocks] == ["GET", "POST"]
    assert server.knocks[0].headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in server.knocks[1].headers


def test_a_key_does_not_follow_a_redirect() -> None:
    """Or any server could send it wherever it likes."""
    with (
        house({"/a": Door({})}) as other,
        house({"/a": Door(None, 307, {"location": f"{other.root}/a"})}) as server,
        pytest.raises(AskError) as caught,
    ):
        ask(f"{server.root}/a", api_key=KEY)
    assert caught.value.status == 307
    assert not other.knocks


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r\nx: y", f"{KEY}\u2026"])
def test_a_key_that_cannot_be_sent_is_not_told(key: str) -> None:
    """A file's last line break is a common guest in a key; Python's own message would quote the whole of it."""
    with house({}) as server, pytest.raises(AskError) as caught:
        ask(f"{server.root}/a", api_key=key)
    assert "line break" in str(caught.value)
    assert KEY not in str(caught.value)
    assert not server.knocks


def test_a_name_and_password_in_the_address_are_presented_and_not_shown() -> None:
    """As basic authentication, percent-decoded."""
    with house({"/a": Door({})}) as server:
        url = server.root.replace("://", "://me:p%40ss@")
        assert ask(f"{url}/a") == {}
        with pytest.raises(AskError) as caught:
            ask(f"{url}/b")
    expected = base64.b64encode(b"me:p@ss").decode()
    assert server.knocks[0].headers["authorization"] == f"Basic {expected}"
    assert "p@ss" not in str(caught.value)
    assert "p%40ss" not in str(caught.value)


def test_loopback_is_asked_without_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy elsewhere cannot reach this machine's loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with house({"/a": Door({})}) as server:
        assert ask(f"{server.root}/a") == {}


def test_telling_takes_any_success() -> None:
    """SGLang answers a cache reset with a sentence, which asking for JSON would call a failure."""
    with house({"/flush_cache": Door("Cache flushed.\n")}) as server:
        tell(f"{server.root}/flush_cache")
        with pytest.raises(AskError, match="not JSON"):
            ask(f"{server.root}/flush_cache", body={})
        with pytest.raises(AskError, match="HTTP 404"):
            tell(f"{server.root}/other")


@pytest.mark.parametrize(
    "url",
    ["gpu-box/v1", "localhost:8000/v1", "ftp://gpu-box/v1", "http://", "http://gpu-box:port/v1", "http://[::1/v1"],
)
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    """Before anything is sent."""
    assert address_problem(url)
    with pytest.raises(AskError, match="address"):
        ask(url)


@pytest.mark.parametrize("url", ["http://gpu-box:8000/v1", "https://[::1]:8000", "https://me:pw@gpu-box/v1"])
def test_an_address_is_accepted(url: str) -> None:
    """With or without a port, a path, a login."""
    assert address_problem(url) is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@gpu-box:8000/v1", "http://gpu-box:8000/v1"),
        ("https://gpu-box/v1?key=secret#secret", "https://gpu-box/v1"),
        ("http://me:sec@ret@[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    """Login, query and fragment stay out of messages and files."""
    assert without_userinfo(url) == shown
