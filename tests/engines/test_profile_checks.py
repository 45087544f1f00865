"""Profiles that would break a request, or keep a key in a file, are refused by file and line."""

from __future__ import annotations

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.engines.profile import parse_profile

SECRET = "sk-verysecret123"


def refusal(line: str) -> str:
    """What a user reads who has that line in a profile."""
    with pytest.raises(SettingsError) as caught:
        parse_profile(f"name: p\nengines: [p]\n{line}\n", "p.yaml")
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith("p.yaml:3: ")
    assert SECRET not in said
    return said.removeprefix("p.yaml:3: ")


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ('{"x\\nevil": a}', "headers: 'x\\nevil' is no name of a header"),
        ('{"x team": a}', "headers: 'x team' is no name of a header"),
        ('{"x-téam": a}', "headers: 'x-téam' is no name of a header"),
        ('{"": a}', "headers: '' is no name of a header"),
        ('{x-team: "a\\nb"}', "headers: x-team holds a line break"),
        ('{x-team: "é"}', "headers: x-team holds a line break or another character that a header cannot carry"),
        ("{x-team: 3}", "headers: x-team has no text; write one in quotes"),
        ("{Content-Length: '5'}", "headers: Content-Length is written by the client itself; take it out"),
        ("{host: a}", "headers: host is written by the client"),
        ("{transfer-encoding: chunked}", "headers: transfer-encoding is written by the client"),
        ("{connection: close}", "headers: connection is written by the client"),
        (f"{{authorization: {SECRET}}}", "headers: authorization looks like a key, and a file must hold none; name"),
        ("{X-Api-Key: abc}", "headers: X-Api-Key looks like a key"),
        ("{x-gateway-token: abc}", "headers: x-gateway-token looks like a key"),
        ("{cookie: abc}", "headers: cookie looks like a key"),
        (f"{{x-team: {SECRET}}}", "headers: x-team looks like a key"),
        ("[a]", "headers is list; it must be header names with a text each"),
    ],
)
def test_a_header_that_cannot_be_sent_or_kept_is_refused(headers: str, message: str) -> None:
    """Its name is told, its value never."""
    assert refusal(f"headers: {headers}").startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("force: {messages: []}", "force names messages, which every request carries as measured; take it out"),
        ("force: {stream: false}", "force names stream, "),
        ("omit: [model, messages, stream, prompt]", "omit names messages, model, prompt, stream, which every request"),
        ("omit: [stream_options]", "omit names stream_options, which every request carries as measured; take it out; "),
        ("reset_path: reset", "reset_path is 'reset'; it must be a path such as /reset_prefix_cache"),
        ("key_header: content-length", "key_header is 'content-length'; it must be the name of a header"),
        ('key_header: "x key"', "key_header is 'x key'; it must be the name of a header"),
    ],
)
def test_a_request_stays_what_it_is(line: str, message: str) -> None:
    """No profile changes what is asked, or asks at no address."""
    assert refusal(line).startswith(message)


def test_what_is_harmless_passes() -> None:
    """Ordinary headers, parameters and paths; none of the words above is found inside another."""
    headers = "headers: {x-team: serving, anthropic-version: '2023-06-01', x-monkey: a, x-tokenizer: b, author: c}"
    profile = parse_profile(f"name: p\nengines: [p]\n{headers}\nforce: {{min_tokens: 3}}\nomit: [temperature]\n", "p")
    assert set(profile.headers) == {"x-team", "anthropic-version", "x-monkey", "x-tokenizer", "author"}
