"""A key never reaches a reader: not in part where a message was shortened, and not in another encoding."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from phasegate.core.hiding import HIDDEN, hide, hide_in, hide_key
from phasegate.core.timeline import Ending, Expected, Read, Recording, Timeline
from phasegate.wire.decoding import decode

KEY = "AbCdEf0123456789xyz"

KEYS = (KEY, "sk-proj-Zz9_8yX-7wV6uT5sR4", "0f8fad5bd9cb469fa165708867", "Key/With+Signs=1234==")

VISIBLE = 8
"""So many characters of a key side by side would give it away."""


def refusal(body: bytes, *, headers: tuple[tuple[str, str], ...] = (), detail: str = "", cut: int = 0) -> Recording:
    reads = (Read(0.2, body[:cut]), Read(0.25, body[cut:])) if cut else (Read(0.2, body),)
    return Recording(
        request_id="r", due=0.0, sent=0.0, connect_time=0.0, http_status=400,
        headers=headers or (("content-type", "application/json"),), headers_at=0.1, reads=reads, ending=Ending.EOF,
        ended_at=0.3, detail=detail, expected=Expected(),
    )  # fmt: skip


def seen(key: str, text: str) -> int:
    """Characters of the key that stand side by side in a text, in any case."""
    low, text = key.lower(), text.lower()
    return max(
        (
            end - begin
            for begin in range(len(key))
            for end in range(begin + 1, len(key) + 1)
            if low[begin:end] in text and any(mark.isdigit() for mark in low[begin:end])
        ),
        default=0,
    )


def said(line: Timeline) -> str:
    return " ".join(str(one) for one in (line.error_message, line.model, line.finish_reason, line.count_problem))


@pytest.mark.parametrize("field", ["message", "code", "type", "param"])
def test_no_shortening_leaves_a_part_of_a_key(field: str) -> None:
    """Wherever the limits of a message fall, the key was hidden before."""
    for pad in range(440, 520):
        filler = "y" * (pad if field == "message" else pad - 420)
        error = {"message": "y" * 5, field: filler + KEY}
        text = said(decode(refusal(json.dumps({"error": error}).encode()), KEY))
        assert seen(KEY, text) < VISIBLE, (pad, text)


@pytest.mark.parametrize("blanks", [9_980, 9_990, 9_999, 65_500, 65_520, 65_530])
def test_nor_does_the_limit_of_what_is_looked_at(blanks: int) -> None:
    """Blanks are drawn together, so that a message cut at a page's end would show a key's first half."""
    for shift in range(0, 24, 3):
        text = said(decode(refusal(b" " * (blanks - shift) + KEY.encode() + b" was refused"), KEY))
        assert seen(KEY, text) < VISIBLE, text


def chunked_prefill(key: str) -> str:
    return f"{key[:9]}\n {key[9:]}"


def everything_escaped(key: str) -> str:
    return "".join(f"\\u{ord(mark):04x}" for mark in key)


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a sentence": lambda key: f"Incorrect API key provided: {key}. You can find it",
    "cut": lambda key: f"bad key {key[:-4]}...",
    "its end": lambda key: f"bad key ...{key[4:]}",
    "other case": lambda key: key.swapcase(),
    "percent": lambda key: quote(key, safe=""),
    "percent, everything": lambda key: "".join(f"%{ord(mark):02x}" for mark in key),
    "json": everything_escaped,
    "json, in part": lambda key: key[:5] + everything_escaped(key[5:9]) + key[9:],
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a login": lambda key: "Basic " + base64.b64encode(f"user:{key}".encode()).decode(),
    "base64 of a header": lambda key: base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "html": lambda key: "".join(f"&#{ord(mark)};" for mark in key),
    "spaced": " ".join,
    "in pieces": chunked_prefill,
    "with marks that do not show": "\u200b".join,
}


@pytest.mark.parametrize("how", ENCODINGS)
@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_however_it_is_written(key: str, how: str) -> None:
    text = hide(ENCODINGS[how](key), key)
    assert HIDDEN in text
    plain = text.replace("\u200b", "").replace(" ", "").replace("\n", "")
    assert seen(key, plain) < VISIBLE
    for form in (key.encode().hex(), base64.b64encode(key.encode()).decode()):
        assert form[4:20] not in text


@pytest.mark.parametrize("how", ENCODINGS)
def test_neither_in_what_a_server_says_of_a_failure(how: str) -> None:
    encoded = ENCODINGS[how](KEY)
    bodies = (
        json.dumps({"error": {"message": encoded}}).encode(),
        json.dumps({"error": {"message": encoded}}, ensure_ascii=False).encode(),
        b'data: {"error": {"message": "' + encoded.replace("\n", " ").encode() + b'"}}\n\n',
        f"<h1>{encoded}</h1>".encode(),
    )
    for body in bodies:
        for cut in (0, len(body) // 2):
            assert seen(KEY, said(decode(refusal(body, cut=cut), KEY))) < VISIBLE


def test_nor_in_headers_and_the_transports_words() -> None:
    odd = refusal(b"{}", headers=(("content-type", f"text/{KEY}"), ("content-encoding", KEY)), detail=f"refused {KEY}")
    assert seen(KEY, said(decode(odd, KEY))) < VISIBLE
    lost = Recording(**{**{name: getattr(odd, name) for name in Recording.__slots__}, "http_status": None,
                        "ending": Ending.CONNECT_FAILED, "reads": ()})  # fmt: skip
    assert decode(lost, KEY).error_message == f"refused {HIDDEN}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("no key is required here, none at all; measure more sessions", "no-key-required"),
        ("not decided: more requests are needed", "not-needed"),
        ("an empty answer", "EMPTY"),
        ("meta-llama/Llama-3.1-8B-Instruct", "sk-1234567890abcdef"),
        ("TTFT 12.345678 ms", "sk-live-AbCdEfGh"),
    ],
)
def test_ordinary_words_stay(text: str, key: str) -> None:
    """A placeholder for a key is made of words that reports need."""
    assert hide_key(text, key) == text


def test_numbers_of_a_record_stay_numbers() -> None:
    record = {"ttft": 0.12345678, KEY: [KEY, 3, None, {"text": f"a {KEY[:12]}"}]}
    assert hide_in(record, "x12345678y", KEY) == {
        "ttft": 0.12345678,
        HIDDEN: [HIDDEN, 3, None, {"text": f"a {HIDDEN}"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "http://user:hunter22@host/v1",
        "postgres://hunter22@host/db",
        "https://host/v1?api_key=hunter22&x=1",
        "Authorization: Bearer hunter22",
        "api-key: hunter22",
    ],
)
def test_what_looks_like_a_credential_goes_without_being_known(text: str) -> None:
    assert "hunter22" not in hide(text)
